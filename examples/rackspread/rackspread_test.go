package rackspread

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func webPod(namespace, application string) *corev1.Pod {
	pod := plugintest.NewPod(namespace, "p", nil)
	pod.Labels = map[string]string{app: application}
	return pod
}

func TestPodsAreSpreadOverRacks(t *testing.T) {
	web, other, elsewhere := webPod("shop", "web"), webPod("shop", "db"), webPod("test", "web")
	nodes := map[string]*plugintest.Node{}
	h := &plugintest.Handle{}
	for name, pods := range map[string][]*corev1.Pod{"a1": {web, web, other}, "a2": nil, "b1": {web, elsewhere},
		"c1": {other}, "loose": {web}} {
		nodes[name] = plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, pods...)
		h.NodeList = append(h.NodeList, nodes[name])
	}
	plugin, err := New(t.Context(), scheduler.NewArguments(nil), h)
	if err != nil {
		t.Fatal(err)
	}
	for name, members := range map[string][]any{"a": {"a1", "a2", "absent"}, "b": {"b1"}, "c": {"c1"},
		"old": {"loose", "b1"}} {
		rack := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name},
			"spec": map[string]any{"nodes": members}}}
		if err := plugin.setRack(rack); err != nil {
			t.Fatal(err)
		}
	}
	plugin.deleteRack("", "old")
	if plugin.setRack(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodes": "a1"}}}) == nil {
		t.Error("an invalid rack is read")
	}
	state := plugintest.NewState()
	if status := plugin.PreScore(t.Context(), state, webPod("shop", "web"), nil); status != nil {
		t.Fatal(status)
	}
	for name, want := range map[string]int64{"a1": 33, "a2": 33, "b1": 50, "c1": 100, "loose": 100} {
		if got, status := plugin.Score(t.Context(), state, web, nodes[name]); got != want || status != nil {
			t.Errorf("node %s: %d, %v, want %d", name, got, status, want)
		}
	}
}

func TestPodsWithoutAnApplicationAreNotScored(t *testing.T) {
	plugin, err := New(t.Context(), scheduler.NewArguments(nil), &plugintest.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	for application, want := range map[string]scheduler.Code{"": scheduler.CodeSkip, "web": scheduler.CodeSuccess} {
		if got := plugin.PreScore(t.Context(), plugintest.NewState(), webPod("shop", application), nil).Code(); got != want {
			t.Errorf("application %q: %s, want %s", application, got, want)
		}
		if _, status := plugin.Sign(t.Context(), webPod("shop", application)); status.IsSuccess() != (application == "") {
			t.Errorf("application %q: signed: %v", application, status)
		}
	}
}
