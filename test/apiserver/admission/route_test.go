//go:build linux

package admission

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

// routed is a namespace whose pods are routed to a scheduler of that name.
const routed = "routed"

// register registers the route as `deploy` does, and lets the API server trust its webhook.
func (c *cluster) register(t *testing.T, w *webhooks.Installed) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: routed}}
	if _, err := c.kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	release, err := inspect.ServerRelease(c.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := route.Objects(route.Registration{Release: release, WebhookNamespace: controller.DefaultNamespace,
		Labels: ownership.Labels(routed), Rule: route.Rule{Scheduler: routed, Namespace: "kube-system",
			Route: v1alpha1.Route{Namespaces: []string{routed}}}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), &unstructured.Unstructured{Object: fields}); err != nil {
			t.Fatal(err)
		}
	}
	w.Trust(t)
	run.Eventually(t, "pods are routed", func(context.Context) (bool, string) {
		pod := c.pod(t, routed, "1m")
		defer c.delete(t, pod)
		return pod.Spec.SchedulerName == routed, pod.Spec.SchedulerName
	})
}

// slowestCreation creates pods of the route, none of which may be refused, and returns the time of
// the slowest one.
func (c *cluster) slowestCreation(t *testing.T, count int) (most time.Duration) {
	t.Helper()
	var pods []*corev1.Pod
	for range count {
		began := time.Now()
		pods = append(pods, c.pod(t, routed, "1m"))
		most = max(most, time.Since(began))
	}
	c.delete(t, pods...)
	return most
}
