package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestNodesOfAState(t *testing.T) {
	var u report.Usage
	n := named(node("cpu", "4", "gpu", "0"), 2)
	n.Labels = map[string]string{"empty": "", "a": "b"}
	u.AddNode(n)
	u.AddNode(named(node("cpu", "4"), 1))
	u.AddPod(on(pod("cpu", "5"), "2", "z", "", ""))
	other := on(pod(), "2", "a", "Node", "2")
	other.Namespace = "zoo"
	u.AddPod(other)
	u.AddPod(on(pod("cpu", "1"), "2", "a", "DaemonSet", "d"))
	u.AddPod(on(pod("cpu", "1"), "gone", "a", "", ""))
	all := u.List()
	if len(all) != 2 || all[0].Name != "1" || all[1].Name != "2" {
		t.Fatalf("got %v", all)
	}
	var pods []string
	for _, p := range all[1].Pods {
		pods = append(pods, p.Namespace+"/"+p.Name+" "+p.Owner)
	}
	if diff := cmp.Diff([]string{"shop/a DaemonSet/d", "shop/z ", "zoo/a Node/2"}, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if all[1].Utilization("cpu") != 1.5 || all[1].Utilization("gpu") != 0 || all[1].Utilization("none") != 0 {
		t.Errorf("utilization %g", all[1].Utilization("cpu"))
	}
	for key, want := range map[string]bool{"empty": true, "a": true, "b": false} {
		if _, ok := all[1].Label(key); ok != want {
			t.Errorf("label %s: %t", key, ok)
		}
	}
	u.AddPending(on(pod("cpu", "1"), "", "waits", "Job", "j"))
	want := []report.Pod{{Namespace: "shop", Name: "waits", Owner: "Job/j"}}
	if diff := cmp.Diff(want, u.Pending()); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if !all[0].Empty() || all[1].Empty() || u.Nodes != 2 || u.Pods != 4 {
		t.Errorf("%d nodes, %d pods", u.Nodes, u.Pods)
	}
}

func TestAmountsAreFormatted(t *testing.T) {
	for _, tc := range []struct {
		resource string
		amount   int64
		want     string
	}{{"cpu", 1500, "1500m"}, {"cpu", 2000, "2"}, {"memory", 3 << 30, "3Gi"}, {"ephemeral-storage", 1 << 20, "1Mi"},
		{"example.com/gpu", 1 << 20, "1048576"}} {
		if got := report.Amount(tc.resource, tc.amount); got != tc.want {
			t.Errorf("%d of %s: got %s, want %s", tc.amount, tc.resource, got, tc.want)
		}
	}
}

// A pod whose resources are changed in place counts with the larger one of both.
func TestAmountsOfAPod(t *testing.T) {
	p := pod("cpu", "1", "memory", "1Gi")
	p.Spec.Containers[0].Name = "c"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: amounts("cpu", "2"),
		Resources: &corev1.ResourceRequirements{Requests: amounts("cpu", "2")}}}
	want := report.Amounts{"cpu": 2000, "memory": 1 << 30, "pods": 1}
	if diff := cmp.Diff(want, report.PodAmounts(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for phase, want := range map[corev1.PodPhase]bool{"": false, corev1.PodPending: false, corev1.PodRunning: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true} {
		p.Status.Phase = phase
		if report.IsFinished(p) != want {
			t.Errorf("%q is finished: %t", phase, !want)
		}
	}
}

func TestResourcesAreOrdered(t *testing.T) {
	var a, b report.Usage
	a.AddNode(node("pods", "1", "z", "1", "cpu", "1", "none", "0"))
	b.AddNode(node("memory", "1", "a", "1", "cpu", "1"))
	if diff := cmp.Diff([]string{"cpu", "memory", "pods", "a", "z"}, report.Resources(&a, &b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{{"cpu", "memory", -1}, {"pods", "memory", 1}, {"pods", "a", -1}, {"a", "cpu", 1}, {"a", "b", -1}, {"b", "a", 1},
		{"cpu", "cpu", 0}, {"a", "a", 0}} {
		if got := report.CompareResources(tc.a, tc.b); (got > 0) != (tc.want > 0) || (got < 0) != (tc.want < 0) {
			t.Errorf("%s and %s: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// The note has the first request in the order of their texts, whatever the order of the pods is.
func TestOddRequestsAreNoted(t *testing.T) {
	const tiny, huge = "less than 1 KiB, the unit m means thousandths", "more than 2^63-1, schedulers count it as less"
	for name, tc := range map[string]struct {
		requests [][]string // of each pod
		want     []string
	}{
		"none": {[][]string{{"memory", "1Ki", "cpu", "1m"}, {"memory", "0"}}, nil},
		"one":  {[][]string{{"memory", "1023"}}, []string{"pod shop/0 requests 1023 of memory: " + tiny}},
		"several": {[][]string{{"cpu", "9300T"}, {"memory", "10E"}, {"memory", "1", "cpu", "9400T"}, {"memory", "2"}, {"memory", "3"}},
			[]string{"pod shop/2 requests 1 of memory (and 2 more): " + tiny,
				"pod shop/0 requests 9300T of cpu (and 2 more): " + huge}},
	} {
		for _, backward := range []bool{false, true} {
			var before, after report.Usage
			for i := range tc.requests {
				if backward {
					i = len(tc.requests) - 1 - i
				}
				after.AddPod(on(pod(tc.requests[i]...), "n", string(rune('0'+i)), "", ""))
			}
			var r report.Report
			r.Measure(&before, &after)
			if diff := cmp.Diff(tc.want, r.Notes); diff != "" {
				t.Errorf("%s, backward %t: notes (-want +got):\n%s", name, backward, diff)
			}
		}
	}
}

func TestNewNodesThatGotAPod(t *testing.T) {
	r := &report.Report{Unplaced: make([]report.Unplaced, 2), Evicted: make([]report.Placement, 1)}
	for _, node := range []string{"1", "2", "2", "3", "gone"} {
		r.Placements = append(r.Placements, report.Placement{Node: node})
	}
	var before, after report.Usage
	before.AddNode(named(node("cpu", "1"), 1))
	before.AddPod(on(pod(), "gone", "p", "", ""))
	r.Measure(&before, &after)
	if got := r.NewNodes(); got != 3 {
		t.Errorf("%d new nodes, want 3", got)
	}
	if got := (&report.Report{}).NewNodes(); got != 0 || r.Left() != 3 {
		t.Errorf("%d new nodes, %d left", got, r.Left())
	}
}
