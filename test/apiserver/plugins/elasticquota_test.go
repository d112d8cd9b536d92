//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// seats is a resource that only the node of these tests has.
const seats corev1.ResourceName = "example.com/seats"

// teams is a scheduler with the plugin, and a node with four seats. Teams a and b are guaranteed
// two each.
type teams struct{ *cluster }

func startTeams(t *testing.T, s subject) teams {
	t.Helper()
	x := teams{s.start(t, "quota", profiles.Plugin{Name: elasticquota.Name, Args: []byte(
		"{quotas: [{name: a, namespaces: [quota-a], min: {example.com/seats: 2}}, {name: b, namespaces: [quota-b], min: " +
			"{example.com/seats: 2}}]}")}, elasticquota.Rules)}
	for _, namespace := range []string{"quota-a", "quota-b", "quota-c", "quota-none"} {
		x.Namespace(t.Context(), t, namespace)
		t.Cleanup(func() { x.Clear(t, namespace) })
	}
	for _, value := range []int32{-1, 0, 100} {
		x.PriorityClass(t.Context(), t, fmt.Sprintf("quota-%d", value), value)
	}
	x.node(t, "seats", amounts{seats: "4"}, nil)
	return x
}

// create creates a pod that needs a seat.
func (x teams) create(t *testing.T, namespace, name string, priority int32, labels map[string]string) {
	t.Helper()
	pod := x.pod(name, amounts{seats: "1"})
	pod.Labels, pod.Spec.PriorityClassName = labels, fmt.Sprintf("quota-%d", priority)
	x.Create(t.Context(), t, namespace, pod)
}

func (x teams) get(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := x.Kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// seated waits until the pods that have the node are these, as namespace/name without the prefix of
// the namespaces.
func (x teams) seated(t *testing.T, want ...string) {
	t.Helper()
	run.Eventually(t, "the pods on the node are "+strings.Join(want, " "), func(context.Context) (bool, string) {
		list, err := x.Kube.CoreV1().Pods("").List(t.Context(),
			metav1.ListOptions{FieldSelector: "spec.nodeName=quota-seats"})
		if err != nil {
			return false, err.Error()
		}
		var got []string
		for i := range list.Items {
			got = append(got, strings.TrimPrefix(list.Items[i].Namespace, "quota-")+"/"+list.Items[i].Name)
		}
		slices.Sort(got)
		diff := cmp.Diff(want, got)
		return diff == "", diff
	})
}

// awaitReason waits until the scheduler has rejected a pod for a reason.
func (x teams) awaitReason(t *testing.T, namespace, name, reason string) {
	t.Helper()
	run.Eventually(t, name+" is rejected because of "+reason, func(context.Context) (bool, string) {
		text := message(x.get(t, namespace, name))
		return strings.Contains(text, reason), text
	})
}

// run sets the phase of a pod to Running, as a kubelet does. PodDisruptionBudgets do not protect
// pending pods.
func (x teams) run(t *testing.T, namespace, name string) {
	t.Helper()
	if _, err := x.Kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"status": {"phase": "Running"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func (x teams) remove(t *testing.T, namespace, name string) {
	t.Helper()
	if err := x.Kube.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Teams borrow seats, and give them back when the other team needs them. The parts depend on each
// other.
func borrowingTeams(t *testing.T, s subject) {
	x := startTeams(t, s)
	var seated []string
	for _, name := range []string{"b-0", "b-1", "b-2", "b-3"} { // one after the other: their age decides
		x.create(t, "quota-b", name, 100, map[string]string{"pod": name})
		seated = append(seated, "b/"+name)
		x.seated(t, seated...)
		x.run(t, "quota-b", name)
		// The API server writes the age in whole seconds.
		age := x.get(t, "quota-b", name).CreationTimestamp.Unix()
		run.Eventually(t, "the next pod is younger",
			func(context.Context) (bool, string) { return time.Now().Unix() > age, "" })
	}
	budgets, name := x.protect(t, "quota-b", "b-3")
	x.withoutFlush(t, "a team needs a seat that the other one borrows", func() {
		x.create(t, "quota-a", "a-0", 0, nil)
		x.seated(t, "a/a-0", "b/b-0", "b/b-1", "b/b-3")
	})
	x.awaitEvent(t, "b-2")

	// The budget protects b-3, the last pod on a borrowed seat, and guaranteed pods are not evicted.
	x.create(t, "quota-a", "a-1", 0, nil) // of a higher priority it would evict a-0
	x.awaitReason(t, "quota-a", "a-1", "Insufficient example.com/seats")
	if err := budgets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Nothing that the scheduler waits for happens when a PodDisruptionBudget is deleted.
	x.remove(t, "quota-a", "a-1")
	x.withoutFlush(t, "the pod is created again without the budget", func() {
		x.create(t, "quota-a", "a-1", 0, nil)
		x.seated(t, "a/a-0", "a/a-1", "b/b-0", "b/b-1")
	})

	// A pod that would borrow waits, and gets the seat that comes free.
	x.create(t, "quota-b", "b-4", 100, nil)
	x.awaitReason(t, "quota-b", "b-4", "Insufficient example.com/seats")
	x.withoutFlush(t, "a seat comes free", func() {
		x.remove(t, "quota-a", "a-0")
		x.seated(t, "a/a-1", "b/b-0", "b/b-1", "b/b-4")
	})

	// A pod without a team evicts by priority, as ever; the scheduler's own preemption does that.
	x.remove(t, "quota-b", "b-4")
	x.create(t, "quota-none", "low", -1, nil)
	x.seated(t, "a/a-1", "b/b-0", "b/b-1", "none/low")
	x.create(t, "quota-none", "high", 100, nil)
	x.seated(t, "a/a-1", "b/b-0", "b/b-1", "none/high")
	x.limitsOfElasticQuotas(t)
}

// protect creates a PodDisruptionBudget, which without a controller allows no disruption: the pod
// is spared although it is the youngest.
func (x teams) protect(t *testing.T, namespace, pod string) (budgets dynamic.ResourceInterface, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(x.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	if x.Release.Minor < 21 {
		resource.Version = "v1beta1"
	}
	budgets = client.Resource(resource).Namespace(namespace)
	create(t.Context(), t, budgets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/" + resource.Version, "kind": "PodDisruptionBudget", "metadata": map[string]any{"name": pod,
			"namespace": namespace},
		"spec": map[string]any{"minAvailable": int64(1),
			"selector": map[string]any{"matchLabels": map[string]any{"pod": pod}}},
	}})
	return budgets, pod
}

// limitsOfElasticQuotas shows that a pod beyond max waits until the quota is changed.
func (x teams) limitsOfElasticQuotas(t *testing.T) {
	t.Helper()
	for _, pod := range []string{"quota-a/a-1", "quota-b/b-0", "quota-b/b-1", "quota-none/high"} {
		namespace, name, _ := strings.Cut(pod, "/")
		x.remove(t, namespace, name)
	}
	quotas := x.define(t, "elasticquota", schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1",
		Resource: "elasticquotas"}).Namespace("quota-c")
	create(t.Context(), t, quotas, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"name": "limit"},
		"spec": map[string]any{"max": map[string]any{string(seats): int64(1)}},
	}})
	x.create(t, "quota-c", "first", 0, nil)
	x.seated(t, "c/first")
	attempt := 0
	// it asks for the resource every minute
	run.Eventually(t, "the scheduler has read the quota", func(context.Context) (bool, string) {
		name := fmt.Sprintf("probe-%d", attempt)
		attempt++
		x.create(t, "quota-c", name, 0, nil)
		pod := x.awaitDecision(t, name)
		x.remove(t, "quota-c", name)
		return pod.Spec.NodeName == "", "the pod is bound"
	})
	x.create(t, "quota-c", "second", 0, nil)
	x.awaitReason(t, "quota-c", "second", "quota quota-c/limit: no more than 1 of example.com/seats")
	x.withoutFlush(t, "the quota is raised", func() {
		patch := []byte(`{"spec": {"max": {"example.com/seats": 2}}}`)
		if _, err := quotas.Patch(t.Context(), "limit", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		x.seated(t, "c/first", "c/second")
	})
}

// awaitDecision waits until a pod of quota-c is bound or rejected.
func (x teams) awaitDecision(t *testing.T, name string) (pod *corev1.Pod) {
	t.Helper()
	run.Eventually(t, "the scheduler decides about "+name, func(context.Context) (bool, string) {
		pod = x.get(t, "quota-c", name)
		return pod.Spec.NodeName != "" || message(pod) != "", "neither bound nor rejected"
	})
	return pod
}

// awaitEvent waits for the event of an evicted pod.
func (x teams) awaitEvent(t *testing.T, victim string) {
	t.Helper()
	run.Eventually(t, "an event for "+victim, func(ctx context.Context) (bool, string) {
		list, err := x.Kube.EventsV1().Events("quota-b").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == victim && e.Reason == "Preempted" {
				return strings.Contains(e.Note, "(reclaim) for pod quota-a/a-0 of quota a"), e.Note
			}
		}
		return false, fmt.Sprintf("none of %d events", len(list.Items))
	})
}
