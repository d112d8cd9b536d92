//go:build linux

package route

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/routes"
)

// What deploy registers is found again, is no drift when it is suspended, stays suspended when it
// is applied, and is removed.
func TestRegistrationsAreObjectsOfTheScheduler(t *testing.T) {
	for _, release := range releases() {
		t.Run(release, func(t *testing.T) {
			p := controlplane.StartAPIServer(t, release, routes.Flags(release)...)
			for _, api := range mechanisms(p) {
				t.Run("policy "+api, func(t *testing.T) { checkRegistrations(t, p, api) })
			}
		})
	}
}

func checkRegistrations(t *testing.T, p *controlplane.Plane, api string) {
	client, err := apply.New(p.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := route.Objects(route.Registration{Rule: rule(), Release: p.Release, PolicyAPI: api,
		WebhookNamespace: "default", Labels: ownership.Labels(scheduler)})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, o := range typed {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	if err := apply.CheckObjects(objects, "schedulers", scheduler); err != nil {
		t.Error(err)
	}
	changes := func(want apply.Action) {
		t.Helper()
		planned, err := client.Apply(t.Context(), objects)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range planned {
			if c.Action != want {
				t.Errorf("%s is %s, want %s:\n%s", c.Object, c.Action, want, c.Diff)
			}
		}
	}
	changes(apply.Created)
	changes(apply.Unchanged)
	suspend(t, p, objects[0])
	changes(apply.Unchanged)
	owned, err := client.Owned(t.Context(), scheduler, "schedulers")
	if err != nil {
		t.Fatal(err)
	}
	suspended := slices.ContainsFunc(owned, func(o *unstructured.Unstructured) bool {
		_, is := suspension.Since(o)
		return is
	})
	if len(owned) != len(objects) || !suspended {
		t.Errorf("owned %d objects, want %d; suspended: %t", len(owned), len(objects), suspended)
	}
	if _, err := client.Delete(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if owned, err = client.Owned(t.Context(), scheduler, "schedulers"); err != nil || len(owned) > 0 {
		t.Errorf("%d objects are left, %v", len(owned), err)
	}
}

// suspend does what the watchdog does with a route whose scheduler is lost.
func suspend(t *testing.T, p *controlplane.Plane, o *unstructured.Unstructured) {
	t.Helper()
	api, err := dynamic.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{"MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
		"MutatingAdmissionPolicy": "mutatingadmissionpolicies"}
	kind := o.GroupVersionKind()
	of := api.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version,
		Resource: resources[kind.Kind]})
	live, err := of.Get(t.Context(), o.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := suspension.Suspend(live, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := of.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
