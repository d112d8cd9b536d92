package extender

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func names(all ...string) *[]string { return &all }

var threeNodes = []interface{}{
	newNode("good", map[string]string{"score": "100"}), newNode("busy", map[string]string{"no": "", "score": "50"}),
	newNode("bad", map[string]string{"no": "never", "score": "4"}),
}

func TestFilterAnswersNodeNamesWithNodeNames(t *testing.T) {
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, labelled())
	got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("bad", "good", "busy", "new", `q"\`+"\u2028")})
	unknown := "the extender does not know the node yet"
	want := extenderv1.ExtenderFilterResult{
		NodeNames: names("good"),
		FailedNodes: extenderv1.FailedNodesMap{"bad": "is labelled never", "busy": "is labelled no",
			"new": unknown, `q"\` + "\u2028": unknown},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{"bad": "is labelled never"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A scheduler reads NodeNames that are null as no answer, and falls back to Nodes.
func TestFilterWithoutFittingNodesReturnsEmptyList(t *testing.T) {
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, labelled())
	for request, want := range map[string]string{
		`{"Pod": {}, "NodeNames": ["busy"]}`: `"NodeNames":[],`,
		`{"Pod": {}, "NodeNames": []}`:       `"NodeNames":[],`,
		`{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "x", "labels": {"no": ""}}}]}}`:   `"Nodes":{"metadata":{},"items":[]},`,
		`{"pod": {}, "nodes": {"items": [{"metadata": {"name": "x", "labels": {"no": ""}}}]}}  `: `"Nodes":{"metadata":{},"items":[]},`,
	} {
		if status, body := post(t, server, VerbFilter, request); status != http.StatusOK ||
			!strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s", request, status, body)
		}
	}
}

func TestFilterReturnsNodesUnchanged(t *testing.T) {
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, labelled())
	// A newer scheduler may need fields that are unknown to this program.
	request := `{"Pod": {"metadata": {"name": "p"}}, "NodeNames": null, "Nodes": {"metadata": {}, "items": [
		{"metadata": {"name": "fresh"}, "spec": {"fieldOfTomorrow": {"a": [1]}}}, {"metadata": {"name": "good", "labels": {"no": "by now"}}}]}}`
	got := ask[struct {
		Nodes struct {
			Items []map[string]interface{} `json:"items"`
		}
		NodeNames   *[]string
		FailedNodes map[string]string
	}](t, server, VerbFilter, request)
	want := []map[string]interface{}{{
		"metadata": map[string]interface{}{"name": "fresh"},
		"spec":     map[string]interface{}{"fieldOfTomorrow": map[string]interface{}{"a": []interface{}{1.0}}}}}
	if diff := cmp.Diff(want, got.Nodes.Items); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"good": "is labelled no"}, got.FailedNodes); diff != "" || got.NodeNames != nil {
		t.Error(diff, got.NodeNames)
	}
}

// Such a pod has a node, and its resize is deferred.
func TestPoliciesDoNotRejectAPodThatIsResized(t *testing.T) {
	rejecting := preFilterPolicy{"Rejecting", func(context.Context, scheduler.State,
		*corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
		return nil, scheduler.Unresolvable("no")
	}}
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, rejecting, labelled())
	got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "busy", 0), NodeNames: names("busy")})
	if diff := cmp.Diff(names("busy"), got.NodeNames); diff != "" {
		t.Error(diff)
	}
}

func TestPreFilterNarrowsRejectsAndSkips(t *testing.T) {
	never := filterBy("Never",
		func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status { return scheduler.Unschedulable("never") })
	both := func(pre preFiltering) scheduler.Plugin {
		return struct {
			preFilterPolicy
			filtering
		}{preFilterPolicy{"Both", pre}, never.(filterPolicy).filtering}
	}
	narrow := func(name string, nodes ...string) scheduler.Plugin {
		return preFilterPolicy{policy(name),
			func(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
				return &scheduler.PreFilterResult{Nodes: nodes}, nil
			}}
	}
	answer := func(s *scheduler.Status) preFiltering {
		return func(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
			return nil, s
		}
	}
	for _, c := range []struct {
		name    string
		plugins []scheduler.Plugin
		want    []string
		why     extenderv1.FailedNodesMap
	}{
		{"narrowed", []scheduler.Plugin{narrow("A", "good", "bad"), narrow("B", "good", "busy")}, []string{"good"},
			extenderv1.FailedNodesMap{"busy": "not among the nodes that B named", "bad": "not among the nodes that B named"}},
		{"skipped", []scheduler.Plugin{both(answer(scheduler.Skip()))}, []string{
			"good", "busy", "bad"}, extenderv1.FailedNodesMap{}},
		{"rejected", []scheduler.Plugin{both(answer(scheduler.Unresolvable("quota")))}, []string{},
			extenderv1.FailedNodesMap{"good": "quota", "busy": "quota", "bad": "quota"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, c.plugins...)
			got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
				extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good", "busy", "bad")})
			if diff := cmp.Diff(c.want, *got.NodeNames); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.why, got.FailedNodes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The scheduler shows the field Error in the pod's event, and nothing else.
func TestFilterReportsErrorsInTheAnswer(t *testing.T) {
	broken := errors.New("the disk is full")
	for _, c := range []struct {
		name, want string
		plugin     scheduler.Plugin
	}{
		{"error", "extender pmk-extender: filter: policy P, Filter of node good: the disk is full",
			filterBy("P", func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status { return scheduler.Error(broken) })},
		{"a code that Filter does not have", "extender pmk-extender: filter: policy P, Filter of node good: Wait: what?",
			filterBy("P", func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status { return scheduler.Wait("what?") })},
		{"panic", "extender pmk-extender: filter: policy P panicked: runtime error: index out of range [0] with length 0",
			filterBy("P", func(*corev1.Pod, scheduler.NodeInfo) *scheduler.Status {
				empty := []int{}
				_ = empty[len(empty)]
				return nil
			})},
		{"panic of PreFilter", "extender pmk-extender: filter: policy P panicked: oh",
			preFilterPolicy{"P", func(context.Context, scheduler.State, *corev1.Pod) (*scheduler.PreFilterResult,
				*scheduler.Status) {
				panic("oh")
			}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _ := serveWith(t, filledCache(t, threeNodes...), Options{}, c.plugin)
			request := extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good", "busy", "bad")}
			for range 2 { // it serves on
				if got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter, request); got.Error != c.want {
					t.Errorf("got %q, want %q", got.Error, c.want)
				}
			}
		})
	}
}

func TestPanicEndsOnlyTheRequest(t *testing.T) {
	var objects []interface{}
	var all []string
	for _, n := range manyNodes(5000) {
		objects, all = append(objects, n), append(all, n.Name)
	}
	server, _ := serveWith(t, filledCache(t, objects...), Options{},
		filterBy("P", func(_ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
			if n.Node().Name == all[4321] {
				panic("not this one")
			}
			return nil
		}))
	got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: &all})
	if want := "extender pmk-extender: filter: policy P panicked: not this one"; got.Error != want {
		t.Errorf("got %q", got.Error)
	}
	rest := all[:4000]
	if got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: &rest}); len(*got.NodeNames) != 4000 {
		t.Errorf("got %d nodes", len(*got.NodeNames))
	}
}

func TestWithoutClusterNodesComeFromTheRequest(t *testing.T) {
	server, _ := serveWith(t, nil, Options{}, labelled(),
		filterBy("Named", func(_ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
			if n.Node().Name == "a" && n.PodCount() == 0 {
				return nil
			}
			return scheduler.Unschedulable("is not a")
		}))
	got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("a", "b", "")})
	if diff := cmp.Diff([]string{"a"}, *got.NodeNames); diff != "" {
		t.Error(diff)
	}
	whole := &corev1.NodeList{Items: []corev1.Node{*newNode("a", map[string]string{"no": ""}), *newNode("a", nil)}}
	got = ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter,
		extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), Nodes: whole})
	if got.Nodes == nil || len(got.Nodes.Items) != 1 || got.Nodes.Items[0].Labels != nil {
		t.Errorf("got %+v", got.Nodes)
	}
}

func TestUnfilledCacheIsAnError(t *testing.T) {
	c := filledCache(t, threeNodes...)
	c.synced = append(c.synced, func() bool { return false })
	server, _ := serveWith(t, c, Options{}, labelled())
	request := extenderv1.ExtenderArgs{Pod: newPod("p", "", 0), NodeNames: names("good")}
	if got := ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter, request); !strings.Contains(got.Error,
		"has not read the cluster's nodes") {
		t.Errorf("filter: got %+v", got)
	}
	if status, body := post(t, server, VerbPrioritize, request); status != http.StatusInternalServerError ||
		!strings.Contains(string(body), "has not read") {
		t.Errorf("prioritize: got %d %s", status, body)
	}
}

// The handwritten encoding must equal the encoding of encoding/json.
func TestAnswersEncodeTheWireTypes(t *testing.T) {
	a := &nodeArguments{names: []string{"a", "b", "c", "é<&>"}}
	rejected := []*rejection{nil, {reason: "tab\t and \"quote\""}, {reason: "for good", unresolvable: true}, nil}
	var got extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(appendFilterResult(nil, a, rejected), &got); err != nil {
		t.Fatal(err)
	}
	want := extenderv1.ExtenderFilterResult{
		NodeNames:                  names("a", "é<&>"),
		FailedNodes:                extenderv1.FailedNodesMap{"b": "tab\t and \"quote\"", "c": "for good"},
		FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{"c": "for good"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var scores extenderv1.HostPriorityList
	if err := json.Unmarshal(appendPriorities(nil, a.names, []int64{0, 10, 3, 7}), &scores); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(extenderv1.HostPriorityList{{Host: "a"}, {Host: "b", Score: 10}, {Host: "c", Score: 3},
		{Host: "é<&>", Score: 7}}, scores); diff != "" {
		t.Error(diff)
	}
}
