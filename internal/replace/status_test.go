package replace

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
)

// withOpenShift returns the dependencies on a cluster whose default scheduler is in another
// namespace than kube-system.
func withOpenShift(t *testing.T) Deps {
	t.Helper()
	const namespace = "openshift-kube-scheduler"
	holder := "openshift-kube-scheduler-m1"
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "openshift-kube-scheduler-m1",
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec: corev1.PodSpec{NodeName: "m1", HostNetwork: true, Containers: []corev1.Container{{Name: "kube-scheduler",
			Image: "localhost/ocp", Command: []string{"hyperkube", "kube-scheduler"}}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-scheduler", Ready: true,
			Image: "localhost/ocp"}}},
	}
	objects := map[string]any{
		"/api/v1/namespaces/kube-system/pods": metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table"},
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}},
		"/api/v1/nodes": corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}},
		"/api/v1/pods": corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			Items: []corev1.Pod{pod}},
		"/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/kube-scheduler": coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			Spec:     coordinationv1.LeaseSpec{HolderIdentity: &holder}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, found := objects[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			object = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		_ = json.NewEncoder(w).Encode(object)
	}))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	return Deps{Kube: kube, Warn: func(text string) { t.Errorf("warning: %s", text) }}
}

func TestStatusShowsDefaultSchedulersOutsideOfKubeSystem(t *testing.T) {
	status := &Status{}
	if err := withOpenShift(t).nodes(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	want := []NodeStatus{{Node: "m1", Image: "localhost/ocp", Ready: true, Leads: true}}
	if diff := cmp.Diff(want, status.Nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// A command that can only fail on the nodes is not printed.
func TestPlanOfAllNodesIsRefusedWhereNoNodeCanBeReplaced(t *testing.T) {
	nodes := []inspect.ControlPlaneNode{{Name: "m1", Ready: true}}
	pods := []inspect.SchedulerPod{{Namespace: "x", Name: "kube-scheduler-m1"}}
	for name, tc := range map[string]struct {
		info inspect.Info
		want string
	}{
		"OpenShift": {inspect.Info{Layout: "openshift"}, "kube-scheduler operator"},
		"an unknown static pod": {inspect.Info{Layout: inspect.LayoutUnknown, Scheduler: inspect.Scheduler{Pods: pods}},
			"replace Pod/x/kube-scheduler-m1"},
		"no static pod": {inspect.Info{Layout: inspect.LayoutUnknown}, "not a control-plane node of a known layout"},
		"not all nodes are known": {inspect.Info{Layout: "kubeadm", ControlPlane: inspect.ControlPlane{Truncated: true,
			Count: 50}}, "only 50 of them were inspected"},
	} {
		tc.info.ControlPlane.Nodes = nodes
		plan, err := PlanNodes(t.Context(), withOpenShift(t), &tc.info, Goal{Image: "x"})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %+v, %v", name, plan, err)
		}
	}
}
