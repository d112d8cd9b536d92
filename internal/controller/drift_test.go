package controller

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

func TestDriftNamesTheObjectAndItsFirstField(t *testing.T) {
	replicas := func(n int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": n}}}
	}
	compared := []apply.Comparison{
		{Object: "Role/ns/same", Action: apply.Unchanged},
		{Object: "Deployment/ns/changed", Action: apply.Configured, Live: replicas(7), Applied: replicas(2)},
		{Object: "Secret/ns/deleted", Action: apply.Created},
		{Object: "ConfigMap/ns/taken", Action: apply.Configured, Foreign: true},
	}
	list, err := describeDrift(compared, 3)
	const want = "Deployment/ns/changed spec.replicas is 7, recorded is 2; Secret/ns/deleted is missing; " +
		"ConfigMap/ns/taken is not managed by pmk-sched"
	if got := summarize(list); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	unread := errors.New("no answer")
	if list, err := describeDrift(append(compared, apply.Comparison{Object: "Role/ns/r", Err: unread}), 3); list != nil ||
		!errors.Is(err, unread) || !strings.Contains(err.Error(), "revision 3") {
		t.Errorf("an object that was not compared: got %v, %v", list, err)
	}
}

func TestDriftOfManyObjectsIsCut(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a": "a", "a b c d e": "a; b; c; d; e", "a b c d e f": "a; b; c; d; e; …",
	} {
		if got := summarize(strings.Fields(list)); got != want {
			t.Errorf("%q: got %q, want %q", list, got, want)
		}
	}
}

// A sidecar and an extender that others deployed have no Deployment of their own.
func TestDeploymentsOfAnObject(t *testing.T) {
	object := &v1alpha1.CustomScheduler{}
	object.Name = "s"
	object.Spec.Extenders = []v1alpha1.Extender{
		{Name: "pods"}, {Name: "sidecar", Sidecar: true}, {Name: "elsewhere", URLPrefix: "http://example.com"}, {Name: "more"},
	}
	if got := strings.Join(deployedNames(object), " "); got != "s pods more" {
		t.Errorf("got %q", got)
	}
}

// The status of a Deployment changes with each pod; only the first and the last available replica
// matter.
func TestChangesThatWakeTheReconciler(t *testing.T) {
	deployment := func(generation int64, available int32, version string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: generation, ResourceVersion: version},
			Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
	secret := func(version string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a spec":                      {deployment(1, 2, "1"), deployment(2, 2, "2"), true},
		"another available replica":   {deployment(1, 1, "1"), deployment(1, 2, "2"), false},
		"the first available replica": {deployment(1, 0, "1"), deployment(1, 1, "2"), true},
		"the last available replica":  {deployment(1, 1, "1"), deployment(1, 0, "2"), true},
		"a Secret":                    {secret("1"), secret("2"), true},
		"a Secret that is read again": {secret("1"), secret("1"), false},
	} {
		if got := isChange(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
