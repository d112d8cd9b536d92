//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// seats is a resource that only the node of these tests has.
const seats corev1.ResourceName = "example.com/seats"

// teams is a scheduler with the plugin, and a node with four seats. Teams a and b are guaranteed two each.
type teams struct {
	*schedulerProcess
	ctx  context.Context
	kube kubernetes.Interface
}

func startTeams(t *testing.T) *teams {
	t.Helper()
	built := buildScheduler(t.Context(), t) // for the first time that takes minutes
	x := &teams{ctx: testContext(t), kube: server.Client(t)}
	const quotas = "{quotas: [{name: a, namespaces: [quota-a], min: {example.com/seats: 2}}, {name: b, namespaces: [quota-b], min: {example.com/seats: 2}}]}"
	for _, namespace := range []string{"quota-a", "quota-b", "quota-c", "quota-none"} {
		createNamespace(x.ctx, t, x.kube, namespace)
	}
	createReadyNode(x.ctx, t, x.kube, "seats")
	node, err := x.kube.CoreV1().Nodes().Get(x.ctx, "seats", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable[seats] = resource.MustParse("4")
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	if _, err := x.kube.CoreV1().Nodes().UpdateStatus(x.ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	rules, err := elasticquota.Rules(scheduler.NewArguments([]byte(quotas)))
	if err != nil {
		t.Fatal(err)
	}
	x.schedulerProcess = startPlugin(x.ctx, t, x.kube, built, "quotas", profiles.Plugin{Name: "ElasticQuota", Args: []byte(quotas)}, rules)
	return x
}

// create creates a pod that needs a seat. It ends at once when it is deleted: no kubelet stops it.
func (x *teams) create(t *testing.T, namespace, name string, priority int32, labels map[string]string) {
	t.Helper()
	one, now := corev1.ResourceList{seats: resource.MustParse("1")}, int64(0)
	pod := newPod(namespace, 0)
	pod.Name, pod.Labels, pod.Spec.SchedulerName, pod.Spec.TerminationGracePeriodSeconds = name, labels, "quotas", &now
	pod.Spec.PriorityClassName = fmt.Sprintf("quota-%d", priority)
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // the node has no kubelet, so it never becomes ready
	if _, err := x.kube.CoreV1().Pods(namespace).Create(x.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits until the pods that have the node are these, as namespace/name without the prefix of the namespaces.
func (x *teams) await(t *testing.T, most time.Duration, want ...string) {
	t.Helper()
	sort.Strings(want)
	began := time.Now()
	run.Eventually(t, "the pods on the node are "+strings.Join(want, " "), func(context.Context) (bool, string) {
		list, err := x.kube.CoreV1().Pods("").List(x.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=seats"})
		if err != nil {
			return false, err.Error()
		}
		var got []string
		for i := range list.Items {
			got = append(got, strings.TrimPrefix(list.Items[i].Namespace, "quota-")+"/"+list.Items[i].Name)
		}
		sort.Strings(got)
		if diff := cmp.Diff(want, got); diff != "" {
			if time.Since(began) > most {
				t.Fatalf("after %s (-want +got):\n%s", most, diff)
			}
			return false, diff
		}
		return true, ""
	})
	t.Logf("%s after %s", strings.Join(want, " "), time.Since(began))
}

// awaitReason waits until the scheduler has rejected a pod for a reason.
func (x *teams) awaitReason(t *testing.T, namespace, name, reason string) {
	t.Helper()
	run.Eventually(t, name+" is rejected because of "+reason, func(context.Context) (bool, string) {
		pod, err := x.kube.CoreV1().Pods(namespace).Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		text := fmt.Sprint(pod.Status.Conditions)
		return strings.Contains(text, reason), text
	})
}

// setRunning does what a kubelet does. PodDisruptionBudgets do not protect pending pods.
func (x *teams) setRunning(t *testing.T, namespace, name string) {
	t.Helper()
	if _, err := x.kube.CoreV1().Pods(namespace).Patch(x.ctx, name, types.MergePatchType, []byte(`{"status": {"phase": "Running"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func (x *teams) remove(t *testing.T, namespace, name string) {
	t.Helper()
	if err := x.kube.CoreV1().Pods(namespace).Delete(x.ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// placeSeats is how long a scheduler may take that has to evict a pod first and may be in a back-off.
const placeSeats = 20 * time.Second

// Teams borrow seats, and give them back when the other team needs them. The parts depend on each other.
func TestTeamsBorrowAndGiveBack(t *testing.T) {
	t.Parallel()
	x := startTeams(t)
	for _, value := range []int32{-1, 0, 100} {
		x.createPriority(t, value)
	}
	for _, name := range []string{"b-0", "b-1", "b-2", "b-3"} {
		x.create(t, "quota-b", name, 100, map[string]string{"pod": name})
		awaitBound(x.ctx, t, x.kube, "quota-b", name) // one after the other: their age decides
		x.setRunning(t, "quota-b", name)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	}
	// A PodDisruptionBudget without a controller allows no disruption: the newest pod is spared.
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b-3"}}
	least := intstr.FromInt32(1)
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod": "b-3"}}}
	if _, err := x.kube.PolicyV1().PodDisruptionBudgets("quota-b").Create(x.ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	x.create(t, "quota-a", "a-0", 0, nil)
	x.await(t, placeSeats, "a/a-0", "b/b-0", "b/b-1", "b/b-3")
	x.awaitEvent(t, "b-2")

	// What is left of b's borrowing cannot be evicted, and guaranteed pods are not.
	x.create(t, "quota-a", "a-1", 0, nil) // of a higher priority it would evict a-0
	x.awaitReason(t, "quota-a", "a-1", "Insufficient example.com/seats")
	if err := x.kube.PolicyV1().PodDisruptionBudgets("quota-b").Delete(x.ctx, "b-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.touch(t, "quota-a", "a-1")
	x.await(t, placeSeats, "a/a-0", "a/a-1", "b/b-0", "b/b-1")

	// A pod that would borrow waits, and gets the seat that comes free within the time of a back-off.
	x.create(t, "quota-b", "b-4", 100, nil)
	x.awaitReason(t, "quota-b", "b-4", "Insufficient example.com/seats")
	x.remove(t, "quota-a", "a-0")
	x.await(t, placeSeats, "a/a-1", "b/b-0", "b/b-1", "b/b-4")

	// A pod without a team evicts by priority, as ever; the scheduler's own preemption does that.
	x.remove(t, "quota-b", "b-4")
	x.create(t, "quota-none", "low", -1, nil)
	x.await(t, placeSeats, "a/a-1", "b/b-0", "b/b-1", "none/low")
	x.create(t, "quota-none", "high", 100, nil)
	x.await(t, placeSeats, "a/a-1", "b/b-0", "b/b-1", "none/high")
	x.limitsOfElasticQuotas(t)
}

// limitsOfElasticQuotas shows that a pod beyond max waits until the quota is changed.
func (x *teams) limitsOfElasticQuotas(t *testing.T) {
	t.Helper()
	for _, pod := range []string{"quota-a/a-1", "quota-b/b-0", "quota-b/b-1", "quota-none/high"} {
		namespace, name, _ := strings.Cut(pod, "/")
		x.remove(t, namespace, name)
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	create(x.ctx, t, client, definitions, read(t, "elasticquota", "crd.yaml"))
	quotas := client.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}).Namespace("quota-c")
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"name": "limit"},
		"spec": map[string]any{"max": map[string]any{string(seats): int64(1)}},
	}}
	run.Eventually(t, "create the ElasticQuota", func(ctx context.Context) (bool, string) {
		_, err := quotas.Create(ctx, quota, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	// The scheduler asks for the resource every minute.
	x.create(t, "quota-c", "first", 0, nil)
	awaitBound(x.ctx, t, x.kube, "quota-c", "first")
	attempt := 0
	run.Eventually(t, "the scheduler reads the quota", func(context.Context) (bool, string) {
		name := fmt.Sprintf("probe-%d", attempt)
		attempt++
		x.create(t, "quota-c", name, 0, nil)
		x.awaitDecision(t, name)
		pod, err := x.kube.CoreV1().Pods("quota-c").Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		x.remove(t, "quota-c", name)
		return pod.Spec.NodeName == "", "the pod is bound"
	})
	x.create(t, "quota-c", "second", 0, nil)
	x.awaitReason(t, "quota-c", "second", "quota quota-c/limit: no more than 1 of example.com/seats, 1 is used")
	patch := []byte(`{"spec": {"max": {"example.com/seats": 2}}}`)
	if _, err := quotas.Patch(x.ctx, "limit", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	x.await(t, placeSeats, "c/first", "c/second")
}

func (x *teams) createPriority(t *testing.T, value int32) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("quota-%d", value)}, Value: value}
	if _, err := x.kube.SchedulingV1().PriorityClasses().Create(x.ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitDecision waits until a pod of quota-c is bound or rejected.
func (x *teams) awaitDecision(t *testing.T, name string) {
	t.Helper()
	run.Eventually(t, "the scheduler decides about "+name, func(context.Context) (bool, string) {
		pod, err := x.kube.CoreV1().Pods("quota-c").Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0, "neither bound nor rejected"
	})
}

// touch changes a pod, so that the scheduler tries it again: no pod and no node changes when a PodDisruptionBudget does.
func (x *teams) touch(t *testing.T, namespace, name string) {
	t.Helper()
	patch := []byte(`{"metadata": {"annotations": {"touched": "yes"}}}`)
	if _, err := x.kube.CoreV1().Pods(namespace).Patch(x.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitEvent waits for the event of an evicted pod.
func (x *teams) awaitEvent(t *testing.T, victim string) {
	t.Helper()
	run.Eventually(t, "an event for "+victim, func(ctx context.Context) (bool, string) {
		list, err := x.kube.EventsV1().Events("quota-b").List(ctx, metav1.ListOptions{})
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
