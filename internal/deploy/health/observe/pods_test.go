package observe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func waitingPod(name string, minutes int, condition ...corev1.PodCondition) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a",
			CreationTimestamp: metav1.NewTime(created.Add(time.Duration(minutes) * time.Minute))},
		Status: corev1.PodStatus{Conditions: condition},
	}
}

// podPages answers lists of pods: a page for each scheduler name and token. The first answer is
// that the list expired if expired is set.
type podPages struct {
	t       *testing.T
	pages   map[string]corev1.PodList // by selector and token
	expired bool
	asked   int
}

func (p *podPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p.asked++
	if r.URL.Path != "/api/v1/pods" || query.Get("limit") == "" ||
		!strings.HasSuffix(query.Get("fieldSelector"), ",spec.nodeName=,status.phase=Pending") {
		p.t.Errorf("request %s", r.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	if p.expired {
		p.expired = false
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(query.Get("fieldSelector"), "spec.schedulerName="), ",")
	list := p.pages[name+" "+query.Get("continue")]
	list.TypeMeta = metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}
	_ = json.NewEncoder(w).Encode(list)
}

// newWorkload returns scheduler s, whose configuration contains the profiles s and t, and options
// to read it.
func newWorkload(t *testing.T, handler http.Handler) (*workload, Options) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	w := &workload{NamespacedName: types.NamespacedName{Namespace: "n", Name: "s"}, kind: health.Scheduler,
		app: ownership.Scheduler, configuration: profiles.Summary{Profiles: []string{"s", "t"}, LeaderElect: &no}}
	return w, Options{Kube: kube, Metrics: kubeapi.Metrics{Pods: kube.CoreV1()}}
}

func TestWaitingPodsOfAllProfilesAreListedInPages(t *testing.T) {
	tried := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}
	gated := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonSchedulingGated}
	deleted := waitingPod("deleted", 0)
	deleted.DeletionTimestamp = &metav1.Time{Time: created}
	for name, expired := range map[string]bool{"at once": false, "after the list expired": true} {
		t.Run(name, func(t *testing.T) {
			pages := &podPages{t: t, expired: expired, pages: map[string]corev1.PodList{
				"s ":     {ListMeta: metav1.ListMeta{Continue: "next"}, Items: []corev1.Pod{waitingPod("old", 1, tried), deleted}},
				"s next": {Items: []corev1.Pod{waitingPod("new", 2), waitingPod("gated", 0, gated)}},
				"t ":     {Items: []corev1.Pod{waitingPod("other", 3)}},
			}}
			w, o := newWorkload(t, pages)
			w.readScheduling(t.Context(), o)
			if err := w.requests[0].err; err != nil {
				t.Fatal(err)
			}
			want := &health.Waiting{Pods: 3, Oldest: "a/old", Since: created.Add(time.Minute), Ignored: 2,
				OldestIgnored: "a/new", IgnoredSince: created.Add(2 * time.Minute)}
			if diff := cmp.Diff(want, w.waiting); diff != "" {
				t.Errorf("waiting (-want +got):\n%s", diff)
			}
			if asked := map[bool]int{false: 3, true: 4}[expired]; pages.asked != asked {
				t.Errorf("%d requests, want %d", pages.asked, asked)
			}
		})
	}
}

func TestDescribePodHasTheReasonOfAContainerThatDoesNotRun(t *testing.T) {
	pod := waitingPod("p", 0, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(created)})
	pod.Spec.NodeName = "node-1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Ready: true, RestartCount: 1},
		{RestartCount: 2, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}},
	}
	want := health.Replica{Pod: "p", Node: "node-1", Since: created, Restarts: 3, Reason: "ErrImagePull",
		Message: "not found"}
	if diff := cmp.Diff(want, describePod(&pod, nil)); diff != "" {
		t.Errorf("replica (-want +got):\n%s", diff)
	}
}

func TestNodeProblems(t *testing.T) {
	ready := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status,
				LastTransitionTime: metav1.NewTime(created)}}}}
	}
	silent := ready(corev1.ConditionTrue)
	silent.Status.Conditions = nil
	for _, tc := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"ready", ready(corev1.ConditionTrue), ""},
		{"unknown", ready(corev1.ConditionUnknown), "is not ready since 2026-03-01T12:00:00Z"},
		{"without a condition", silent, "has not reported that it is ready"},
		{"deleted", &corev1.Node{}, "does not exist"},
		{"not read", nil, ""},
	} {
		if got := nodeProblem(tc.node); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// The second page of the pods is refused: it is unknown how many replicas exist.
func TestPodsThatCannotBeListedAreNotMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		refused bool
		want    []string
		unknown bool
	}{
		"listed":  {want: []string{"1 of 2 replicas exist"}},
		"refused": {refused: true, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWorkload(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if tc.refused && r.URL.Query().Get("continue") != "" {
					rw.WriteHeader(http.StatusForbidden)
					return
				}
				list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
				if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("continue") == "" {
					list.Items = []corev1.Pod{replicaPod("s-1", "node-1", false)}
					list.Items[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
					list.Continue = "next"
				}
				rw.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(rw).Encode(list)
			}))
			two := int32(2)
			w.deployment = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &two}}
			w.readReplicas(t.Context(), o)
			got := (&cluster{workloads: []*workload{w}}).describe(versions.Release{}).Schedulers[0]
			var texts []string
			for _, f := range got.Findings(created) {
				texts = append(texts, f.Text)
			}
			if diff := cmp.Diff(tc.want, texts); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if found := strings.Contains(strings.Join(got.Unknown, "\n"), "list pods of"); found != tc.unknown {
				t.Errorf("unknown %q", got.Unknown)
			}
		})
	}
}
