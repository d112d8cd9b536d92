package collect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
)

// apiServer answers requests with the object of their path; pods in two pages. Others are not
// found, or forbidden.
type apiServer struct {
	objects   map[string]any
	forbidden string
	// system are the names of the pods in kube-system.
	system []string
}

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	variant := r.URL.Query().Get("continue")
	if r.URL.Query().Get("fieldSelector") == "reason=FailedCreate" {
		variant = "refused"
	}
	object, found := s.objects[r.URL.Path+"?"+variant]
	switch {
	case r.URL.Path == s.forbidden:
		w.WriteHeader(http.StatusForbidden)
		object = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no"}
	case found:
	case strings.Contains(r.Header.Get("Accept"), "as=Table"):
		table := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table"},
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}}
		for _, name := range s.system {
			table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{name}})
		}
		object = table
	case strings.HasSuffix(r.URL.Path, "s"):
		object = map[string]any{"items": []any{}} // of the kind that the client expects
	default:
		w.WriteHeader(http.StatusNotFound)
		object = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(object)
}

func runningPod(name, node, cpu string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
	}
}

func podList(next string, pods ...corev1.Pod) corev1.PodList {
	return corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{Continue: next}, Items: pods}
}

func eventList(events ...corev1.Event) corev1.EventList {
	return corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: events}
}

// newServer has a pending pod with a claim that does not exist, a node, and two pages of pods.
func newServer() apiServer {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "shop", UID: "1"}, Spec: corev1.PodSpec{
			SchedulerName: "s", Volumes: []corev1.Volume{{Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		}}
	return apiServer{objects: map[string]any{
		"/api/v1/namespaces/shop/pods/web-0?": pod,
		"/api/v1/nodes?": corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}},
		"/api/v1/pods?":     podList("next", runningPod("a", "n1", "1")),
		"/api/v1/pods?next": podList("", runningPod("b", "n1", "500m"), runningPod("c", "n2", "2")),
		"/api/v1/namespaces/shop/events?refused": eventList(
			corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: "web-5d4f"}, Reason: "FailedCreate",
				Message: "exceeded quota"},
			corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Name: "other-5d4f"}, Reason: "FailedCreate",
				Message: "exceeded quota"}),
		"/api/v1/namespaces/shop/events?": eventList(
			corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0", UID: "1"},
				Reason: "FailedScheduling"},
			corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-0", UID: "of a former pod"},
				Reason: "FailedScheduling"}),
	}}
}

func read(t *testing.T, s apiServer, name string) *explain.Input {
	t.Helper()
	web := httptest.NewServer(s)
	defer web.Close()
	in, err := Pod(t.Context(), &rest.Config{Host: web.URL}, "shop", name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestPodsOfAllPagesAreAddedUp(t *testing.T) {
	in := read(t, newServer(), "web-0")
	got := map[string]string{}
	for node, used := range in.Usage {
		quantity := used.Requests[corev1.ResourceCPU]
		got[node] = quantity.String()
	}
	if diff := cmp.Diff(map[string]string{"n1": "1500m", "n2": "2"}, got); diff != "" {
		t.Errorf("CPU (-want +got):\n%s", diff)
	}
	if len(in.Nodes) != 1 || len(in.Events) != 1 || len(in.Unknown) != 0 {
		t.Errorf("nodes %v, events %v, unknown %q", in.Nodes, in.Events, in.Unknown)
	}
	if diff := cmp.Diff([]explain.Claim{{Name: "data"}}, in.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestWhatTheUserMustNotReadIsUnknown(t *testing.T) {
	s := newServer()
	s.forbidden = "/api/v1/pods"
	in := read(t, s, "web-0")
	if in.Usage != nil || len(in.Unknown) != 1 || !strings.Contains(in.Unknown[0], "list pods: no permission") {
		t.Errorf("usage %v, unknown %q", in.Usage, in.Unknown)
	}
}

func TestMissingPodIsExplainedByItsWorkload(t *testing.T) {
	for _, name := range []string{"web", "web-5d4f", "web-5d4f-x2x4"} {
		in := read(t, newServer(), name)
		if in.Pod != nil || len(in.Events) != 1 || in.Events[0].InvolvedObject.Name != "web-5d4f" {
			t.Errorf("%s: pod %v, events %v", name, in.Pod, in.Events)
		}
	}
}

// Events of schedulers from 1.36 on have the UID of the pod that evicts only.
func TestPodThatEvictedAnotherIsNamed(t *testing.T) {
	s := newServer()
	evicting := runningPod("high", "n2", "1")
	evicting.UID = "7"
	s.objects["/api/v1/pods?next"] = podList("", evicting)
	event := func(message string) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(message)}, Reason: "Preempted", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "db-0"}}
	}
	s.objects["/api/v1/namespaces/shop/events?"] = eventList(event("Preempted by pod 7 on node n2."),
		event("Preempted by pod 8 on node n2."), event("Preempted by other/web on node n1"))
	var got []string
	in := read(t, s, "db-0")
	for i := range in.Ended {
		name, uid, _ := explain.Preemptor(&in.Ended[i])
		got = append(got, name+" "+string(uid))
	}
	if diff := cmp.Diff([]string{"shop/high 7", " 8", "other/web "}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
