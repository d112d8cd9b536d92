//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// slots is a resource that only the nodes of these tests have, one for each pod.
	slots corev1.ResourceName = "example.com/slots"
	// placeTime is how long a scheduler may take to place a group for which there is room: its pods may be in a back-off of ten seconds.
	placeTime   = 30 * time.Second
	groupLabel  = "scheduling.x-k8s.io/pod-group"
	memberLabel = "pmk-sched.io/min-member"
)

// The tests of this file share the resource, so that they do not run in parallel with each other.

func TestOneOfTwoGangsIsPlacedAndTheOtherWhenTheFirstIsGone(t *testing.T) {
	x := startGangs(t, "gangs", 5, 2)
	x.create(t, "a", 6, 6)
	x.create(t, "b", 6, 6)
	first, second := x.awaitWhole(t, 6, "a", "b")
	x.awaitReason(t, second, "more than is free")
	if n := x.bound(t, second); n != 0 {
		t.Errorf("%d pods of %s are bound", n, second)
	}
	x.remove(t, first)
	began := time.Now()
	x.awaitBound(t, second, 6, placeTime)
	t.Logf("%s is placed %s after %s was deleted", second, time.Since(began), first)
	x.remove(t, second)
}

// In total there is room for four pods of two slots on four nodes of three, so that one is left over.
func TestGangsThatGetInEachOthersWayArePlacedInTurn(t *testing.T) {
	x := startGangs(t, "rivals", 4, 3)
	for _, name := range []string{"a", "b"} {
		x.createWith(t, name, 3, 3, 2)
	}
	first, second := x.awaitWhole(t, 3, "a", "b")
	if n := x.bound(t, second); n != 0 {
		t.Errorf("%d pods of %s are bound", n, second)
	}
	x.remove(t, first)
	x.awaitBound(t, second, 3, placeTime)
	x.remove(t, second)
}

// Neither one that exceeds the cluster nor one whose pods do not fit on its nodes keeps single pods from being scheduled.
func TestGangThatIsTooLargeDoesNotStarveSinglePods(t *testing.T) {
	x := startGangs(t, "huge", 3, 3)
	x.create(t, "exceeding", 20, 20)
	x.createWith(t, "unfitting", 4, 4, 2)
	x.awaitReason(t, "exceeding", "pod group huge/exceeding needs")
	x.awaitReason(t, "unfitting", "pod group huge/unfitting")
	for i := range 3 {
		x.createPod(t, fmt.Sprintf("single-%d", i), nil, 3)
		x.awaitPod(t, fmt.Sprintf("single-%d", i))
	}
	if n := x.bound(t, "exceeding") + x.bound(t, "unfitting"); n != 0 {
		t.Errorf("%d pods of groups that do not fit are bound", n)
	}
}

// The size is that of a PodGroup, which is created together with its definition after the pods.
func TestGangIsPlacedWhenItsPodGroupIsCreated(t *testing.T) {
	x := startGangs(t, "sized", 2, 2)
	x.create(t, "a", 3, 0)
	x.awaitReason(t, "a", "pod group sized/a has no size")
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	create(x.ctx, t, client, definitions, read(t, "coscheduling", "crd.yaml"))
	podGroups := schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": "a", "namespace": x.namespace}, "spec": map[string]any{"minMember": int64(3)},
	}}
	run.Eventually(t, "create the PodGroup", func(ctx context.Context) (bool, string) {
		_, err := client.Resource(podGroups).Namespace(x.namespace).Create(ctx, object, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	x.awaitBound(t, "a", 3, 2*time.Minute) // the scheduler asks for the resource every minute
}

// gangs is a scheduler with the plugin and nodes with slots.
type gangs struct {
	*schedulerProcess
	ctx       context.Context
	kube      kubernetes.Interface
	namespace string
}

// startGangs starts a scheduler, named as its namespace, with the rights of system:kube-scheduler and those that the plugin declares.
func startGangs(t *testing.T, namespace string, nodes, slotsOfNode int) *gangs {
	t.Helper()
	built := buildScheduler(t.Context(), t) // for the first time that takes minutes
	x := &gangs{ctx: testContext(t), kube: server.Client(t), namespace: namespace}
	createNamespace(x.ctx, t, x.kube, namespace)
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", namespace, i)
		createReadyNode(x.ctx, t, x.kube, name)
		x.addSlots(t, name, slotsOfNode)
		t.Cleanup(func() {
			if err := x.kube.CoreV1().Nodes().Delete(context.WithoutCancel(x.ctx), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	rules, err := coscheduling.Rules(scheduler.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	x.schedulerProcess = startPlugin(x.ctx, t, x.kube, built, namespace, profiles.Plugin{Name: "Coscheduling"}, rules)
	return x
}

func (x *gangs) addSlots(t *testing.T, node string, n int) {
	t.Helper()
	object, err := x.kube.CoreV1().Nodes().Get(x.ctx, node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	amount := *resource.NewQuantity(int64(n), resource.DecimalSI)
	object.Status.Allocatable[slots] = amount
	object.Status.Capacity = object.Status.Allocatable.DeepCopy()
	if _, err := x.kube.CoreV1().Nodes().UpdateStatus(x.ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// create creates the pods of a group, of a slot each. A size of 0 is no label.
func (x *gangs) create(t *testing.T, group string, pods, size int) {
	t.Helper()
	x.createWith(t, group, pods, size, 1)
}

func (x *gangs) createWith(t *testing.T, group string, pods, size, slotsOfPod int) {
	t.Helper()
	labels := map[string]string{groupLabel: group}
	if size > 0 {
		labels[memberLabel] = strconv.Itoa(size)
	}
	for i := range pods {
		x.createPod(t, fmt.Sprintf("%s-%d", group, i), labels, slotsOfPod)
	}
}

func (x *gangs) createPod(t *testing.T, name string, labels map[string]string, slotsOfPod int) {
	t.Helper()
	amount := corev1.ResourceList{slots: *resource.NewQuantity(int64(slotsOfPod), resource.DecimalSI)}
	pod := newPod(x.namespace, 0)
	pod.Name, pod.Labels, pod.Spec.SchedulerName = name, labels, x.namespace
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // these nodes have no kubelet, so they never become ready
	if _, err := x.kube.CoreV1().Pods(x.namespace).Create(x.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (x *gangs) list(t *testing.T, group string) []corev1.Pod {
	t.Helper()
	list, err := x.kube.CoreV1().Pods(x.namespace).List(x.ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + group})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (x *gangs) bound(t *testing.T, group string) (n int) {
	t.Helper()
	for _, pod := range x.list(t, group) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// awaitWhole waits until all pods of one of two groups are bound, and returns that group and the other one.
func (x *gangs) awaitWhole(t *testing.T, size int, a, b string) (first, second string) {
	t.Helper()
	run.Eventually(t, "one of the groups is placed", func(context.Context) (bool, string) {
		boundA, boundB := x.bound(t, a), x.bound(t, b)
		first, second = a, b
		if boundB == size {
			first, second = b, a
		}
		return boundA == size || boundB == size, fmt.Sprintf("%d and %d pods are bound; %s", boundA, boundB, x.reasons(t, a)+x.reasons(t, b))
	})
	return first, second
}

func (x *gangs) awaitBound(t *testing.T, group string, size int, most time.Duration) {
	t.Helper()
	began := time.Now()
	run.Eventually(t, "group "+group+" is placed", func(context.Context) (bool, string) {
		n := x.bound(t, group)
		if n < size && time.Since(began) > most {
			t.Fatalf("%d of %d pods of %s are bound after %s: %s", n, size, group, most, x.reasons(t, group))
		}
		return n == size, fmt.Sprint(n, " are bound; ", x.reasons(t, group))
	})
}

func (x *gangs) awaitPod(t *testing.T, name string) {
	t.Helper()
	awaitBound(x.ctx, t, x.kube, x.namespace, name)
}

// awaitReason waits until the scheduler has rejected every pod of a group, one of them with a reason.
func (x *gangs) awaitReason(t *testing.T, group, reason string) {
	t.Helper()
	run.Eventually(t, "the pods of group "+group+" are rejected", func(context.Context) (bool, string) {
		rejected := true
		for _, pod := range x.list(t, group) {
			rejected = rejected && len(pod.Status.Conditions) > 0
		}
		reasons := x.reasons(t, group)
		return rejected && strings.Contains(reasons, reason), reasons
	})
}

// reasons are the messages of the pods that are not bound.
func (x *gangs) reasons(t *testing.T, group string) string {
	t.Helper()
	var all []string
	for _, pod := range x.list(t, group) {
		for _, c := range pod.Status.Conditions {
			if pod.Spec.NodeName == "" {
				all = append(all, pod.Name+": "+c.Message)
			}
		}
	}
	return strings.Join(all, "; ")
}

// remove deletes the pods of a group at once.
func (x *gangs) remove(t *testing.T, group string) {
	t.Helper()
	now := int64(0)
	if err := x.kube.CoreV1().Pods(x.namespace).DeleteCollection(x.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: groupLabel + "=" + group}); err != nil {
		t.Fatal(err)
	}
}

// startPlugin starts a scheduler with a plugin, the rights of system:kube-scheduler, and those that the plugin declares.
func startPlugin(ctx context.Context, t *testing.T, kube kubernetes.Interface, built *build.Result, name string, plugin profiles.Plugin, rules []rbacv1.PolicyRule) *schedulerProcess {
	t.Helper()
	grant(ctx, t, kube, name, rules)
	process := newSchedulerProcess(t, built, "system:kube-scheduler", name, plugin)
	process.start(t)
	t.Cleanup(func() {
		if log := process.text(); t.Failed() {
			t.Logf("the scheduler wrote:\n%s", log[max(0, len(log)-8<<10):])
		}
	})
	return process
}

// grant gives the user of schedulers the permissions that a plugin declares.
func grant(ctx context.Context, t *testing.T, kube kubernetes.Interface, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:kube-scheduler"}},
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
