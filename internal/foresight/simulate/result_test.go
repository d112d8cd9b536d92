package simulate

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// podAt returns a pod of namespace shop, on a node if it is not empty.
func podAt(name, node string, conditions ...corev1.PodCondition) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: conditions}}
}

// listed returns a client for an API server that has these lists, by resource.
func listed(t *testing.T, lists map[string]any) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(lists[path.Base(r.URL.Path)]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// A pod that was scheduled has a node, a reason, or was evicted; a pod that stayed may have been
// evicted for another.
func TestTheResultIsReadFromTheObjects(t *testing.T) {
	pods := []corev1.Pod{
		podAt("stays", "a"), podAt("moves", "b"), podAt("silent", ""),
		podAt("refused", "", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Message: "0/2 nodes are available"}),
	}
	events := []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: "Preempted",
		InvolvedObject: corev1.ObjectReference{Namespace: "shop", Name: "victim"},
		Message:        "Preempted by shop/moves on node b"}}
	r := newTestRun(t, newCluster(t), Options{Snapshot: recordedObjects{}})
	r.kube = listed(t, map[string]any{"pods": corev1.PodList{Items: pods}, "events": corev1.EventList{Items: events},
		"nodes": corev1.NodeList{Items: make([]corev1.Node, 2)}})
	r.before, r.from = map[string]string{"shop/stays": "a", "shop/victim": "b"}, map[string]string{"shop/moves": "a"}
	for _, name := range []string{"moves", "silent", "refused", "gone"} {
		r.waits["shop/"+name] = true
		r.Waiting = append(r.Waiting, scenario.Waiting{Key: "shop/" + name, Pod: []byte(`{}`)})
	}
	if err := r.readResult(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Report.Finish()
	want := report.Report{
		Placements: []report.Placement{{Namespace: "shop", Name: "moves", Node: "b", From: "a"}},
		Evicted:    []report.Placement{{Namespace: "shop", Name: "victim", Node: "b", By: "shop/moves"}},
		Unplaced: []report.Unplaced{
			{Namespace: "shop", Name: "gone", Reason: report.Evicted},
			{Namespace: "shop", Name: "refused", Reason: "0/2 nodes are available"},
			{Namespace: "shop", Name: "silent", Reason: "the scheduler gave no reason"},
		},
	}
	for name, lists := range map[string][2]any{
		"placements": {want.Placements, r.Report.Placements}, "evicted": {want.Evicted, r.Report.Evicted},
		"unplaced": {want.Unplaced, r.Report.Unplaced}, "nodes": {2, r.Report.Summary.Nodes},
	} {
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
