package verify

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func TestPendingPodIsExplained(t *testing.T) {
	probe := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "p", UID: "1", CreationTimestamp: metav1.Now()},
		Spec:       corev1.PodSpec{SchedulerName: "s"},
	}
	tried := probe
	tried.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available: 1 node(s) had no available volume zone.",
	}}
	deployment := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n", Labels: ownership.Labels("s")},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
	running := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s-1", Namespace: "n"}, Status: corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}}
	pulling := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s-1", Namespace: "n"}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"},
		}}},
	}}
	deployed := appsv1.DeploymentList{Items: []appsv1.Deployment{deployment}}
	const noBinding = "permissions: no ClusterRoleBinding of pmk-sched refers to system:kube-scheduler"
	const absent = "the pod names scheduler s, which was not found: no Deployment of pmk-sched, no Lease and no readable " +
		"configuration of a kube-scheduler has this name"
	const untried = "scheduler s has not reported the pod in 0s"
	for name, c := range map[string]struct {
		pod         corev1.Pod
		deployments appsv1.DeploymentList
		scheduler   corev1.Pod
		reason      string
		findings    []string
	}{
		"no scheduler": {probe, appsv1.DeploymentList{}, running,
			absent, []string{absent}},
		"no permissions": {probe, deployed, running, noBinding, []string{untried, noBinding}},
		"no image": {probe, deployed, pulling, "Pod/n/s-1: container c: ErrImagePull: not found",
			[]string{untried, "Pod/n/s-1: container c: ErrImagePull: not found", noBinding}},
		"rejected": {tried, deployed, running, "1 node: node(s) had no available volume zone",
			[]string{"1 node: node(s) had no available volume zone",
				"message of the scheduler: " + tried.Status.Conditions[0].Message}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var object any = map[string]any{"items": []any{}} // of the kind that the client expects
				switch r.URL.Path {
				case "/api/v1/namespaces/kube-system/pods": // the names of static pods
					object = metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table"},
						ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}}
				case "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler":
					http.NotFound(w, r)
					return
				case "/api/v1/namespaces/p/pods/probe":
					object = c.pod
				case "/apis/apps/v1/deployments":
					object = c.deployments
				case "/api/v1/namespaces/n/pods":
					object = corev1.PodList{Items: []corev1.Pod{c.scheduler}}
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(object)
			}))
			defer server.Close()
			cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			r, err := newVerifier(cfg, Options{Name: "s", Namespace: "n", Deployment: "s", Timeout: 4 * time.Second}, &Result{})
			if err != nil {
				t.Fatal(err)
			}
			var not *NotScheduledError
			if err := r.explainPending(t.Context(), &c.pod); !errors.As(err, &not) {
				t.Fatalf("error is %v", err)
			}
			if want := "it is Pending after 4s: " + c.reason; not.Reason != want {
				t.Errorf("reason %q, want %q", not.Reason, want)
			}
			for i, f := range not.Findings {
				if strings.HasPrefix(f, "scheduler s has not reported the pod in ") {
					not.Findings[i] = untried
				}
			}
			if diff := cmp.Diff(c.findings, not.Findings); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
