package extender

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func TestPrioritizeScalesWeighsAndClamps(t *testing.T) {
	constant := func(name string, score int64) scheduler.Plugin {
		return scoreBy(name, func(scheduler.NodeInfo) (int64, *scheduler.Status) { return score, nil })
	}
	for _, c := range []struct {
		name     string
		policies []Policy
		want     extenderv1.HostPriorityList
	}{
		{"one", []Policy{{Plugin: numbered()}}, extenderv1.HostPriorityList{
			{Host: "good", Score: 10}, {Host: "busy", Score: 5}, {Host: "bad"}, {Host: "new"}}},
		{"weighted", []Policy{{Plugin: numbered(), Weight: 3}, {Plugin: constant("C", 0), Weight: 1}},
			extenderv1.HostPriorityList{{Host: "good", Score: 8}, {Host: "busy", Score: 4}, {Host: "bad"}, {Host: "new"}}},
		{"too much", []Policy{{Plugin: constant("C", 1e15)}}, extenderv1.HostPriorityList{
			{Host: "good", Score: 10}, {Host: "busy", Score: 10}, {Host: "bad", Score: 10}, {Host: "new"}}},
		{"too little", []Policy{{Plugin: constant("C", -7)}}, extenderv1.HostPriorityList{
			{Host: "good"}, {Host: "busy"}, {Host: "bad"}, {Host: "new"}}},
		{"none", []Policy{{Plugin: labelled()}}, extenderv1.HostPriorityList{
			{Host: "good"}, {Host: "busy"}, {Host: "bad"}, {Host: "new"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _ := serveWith(t, filledCache(t, threeNodes...), Options{Policies: c.policies})
			got := ask[extenderv1.HostPriorityList](t, server, VerbPrioritize,
				extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good", "busy", "bad", "new")})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrioritizeWithoutNodesReturnsEmptyList(t *testing.T) {
	server, _ := serveWith(t, filledCache(t), Options{}, numbered())
	if _, body := post(t, server, VerbPrioritize, `{"Pod": {}, "NodeNames": []}`); string(body) != "[]" {
		t.Errorf("got %s", body)
	}
}

// cycle is a plugin whose extension points depend on each other.
type cycle struct{ policy }

func (cycle) PreFilter(_ context.Context, s scheduler.State,
	_ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	s.Write("Cycle", map[string]int64{"good": 1, "busy": 2, "bad": 3})
	return &scheduler.PreFilterResult{Nodes: []string{"good"}}, nil
}

func (cycle) PreScore(_ context.Context, s scheduler.State, _ *corev1.Pod,
	nodes []scheduler.NodeInfo) *scheduler.Status {
	if _, found := s.Read("Cycle"); !found || len(nodes) != 3 {
		return scheduler.Error(errors.New("PreFilter did not run"))
	}
	return nil
}

func (cycle) Score(_ context.Context, s scheduler.State, _ *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	written, _ := s.Read("Cycle")
	return written.(map[string]int64)[n.Node().Name], nil
}

func (cycle) NormalizeScore(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	for i := range scores {
		scores[i].Score *= 30
	}
	return nil
}

func TestScoreReadsStateOfPreFilter(t *testing.T) {
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, cycle{"Cycle"})
	got := ask[extenderv1.HostPriorityList](t, server, VerbPrioritize,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good", "busy", "bad")})
	if diff := cmp.Diff(extenderv1.HostPriorityList{{Host: "good", Score: 3}, {Host: "busy", Score: 6},
		{Host: "bad", Score: 9}}, got); diff != "" {
		t.Error(diff)
	}
}

// skipper skips scoring.
type skipper struct{ scorePolicy }

func (skipper) PreScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeInfo) *scheduler.Status {
	return scheduler.Skip()
}

func TestSkippingPolicyDoesNotCount(t *testing.T) {
	zero := scoreBy("Zero", func(scheduler.NodeInfo) (int64, *scheduler.Status) { return 0, nil }).(scorePolicy)
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, numbered(), skipper{zero})
	got := ask[extenderv1.HostPriorityList](t, server, VerbPrioritize,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good", "busy")})
	if diff := cmp.Diff(extenderv1.HostPriorityList{{Host: "good", Score: 10}, {Host: "busy", Score: 5}},
		got); diff != "" {
		t.Error(diff)
	}
}

// A list of scores has no field for an error; the scheduler logs the status and continues without
// the scores.
func TestPrioritizeReportsErrorsAsStatus(t *testing.T) {
	broken := scoreBy("P", func(scheduler.NodeInfo) (int64, *scheduler.Status) {
		return 0, scheduler.Error(errors.New("no data"))
	})
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, broken)
	status, body := post(t, server, VerbPrioritize,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good")})
	want := "extender pmk-extender: prioritize: policy P, Score of node good: no data\n"
	if status != http.StatusInternalServerError || string(body) != want {
		t.Errorf("got %d %s", status, body)
	}
}

func TestWholeNodesAreScoredWithCachedPods(t *testing.T) {
	c := filledCache(t, newNode("a", nil), newPod("on-a", "a", 500))
	server, _ := serveWith(t, c, Options{}, scoreBy("Used", func(n scheduler.NodeInfo) (int64, *scheduler.Status) {
		return 100 * n.Requested().MilliCPU / n.Allocatable().MilliCPU, nil
	}))
	got := ask[extenderv1.HostPriorityList](t, server, VerbPrioritize,
		`{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1"}}}]}}`)
	if diff := cmp.Diff(extenderv1.HostPriorityList{{Host: "a", Score: 5}}, got); diff != "" {
		t.Error(diff)
	}
}
