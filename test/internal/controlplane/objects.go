//go:build linux

package controlplane

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// GroupLabel keeps the pods of one test on its nodes.
const GroupLabel = "test-group"

// atOnce is how many objects are made at the same time.
const atOnce = 20

// room is the capacity of each node, and whole a request that leaves no room for a second pod with
// the same request.
var (
	room = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"),
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("1000")}
	whole = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
)

// Nodes makes nodes of a group. They have a name and resources, and no kubelet.
func (p *Plane) Nodes(ctx context.Context, t testing.TB, group string, names ...string) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, name := range names {
		all.Go(func() error {
			_, err := p.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{GroupLabel: group, corev1.LabelHostname: name}},
				Status: corev1.NodeStatus{
					Capacity: room, Allocatable: room,
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Numbered returns n names.
func Numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}

// Pod returns a pod for a scheduler and the nodes of a group.
func Pod(scheduler, group, name string) *corev1.Pod {
	no := false
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, NodeSelector: map[string]string{GroupLabel: group},
		AutomountServiceAccountToken: &no,
		// No controller removes the taint of a node that is not ready.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
	}}
}

// Filling makes a pod take so much of a node that no other such pod fits there. Deleted, it is gone
// at once.
func Filling(pod *corev1.Pod) *corev1.Pod {
	none := int64(0)
	pod.Spec.Containers[0].Resources.Requests = whole
	pod.Spec.TerminationGracePeriodSeconds = &none
	return pod
}

// Create creates pods.
func (p *Plane) Create(ctx context.Context, t testing.TB, namespace string, pods ...*corev1.Pod) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, pod := range pods {
		all.Go(func() error { return p.create(ctx, namespace, pod) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// create creates a pod. It tries again while the API server refuses the pod because its cache does
// not have the pod's new priority class yet.
func (p *Plane) create(ctx context.Context, namespace string, pod *corev1.Pod) error {
	const pause = 100 * time.Millisecond
	tooNew := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no PriorityClass")
	}
	return retry.OnError(wait.Backoff{Duration: pause, Steps: int(run.Patience / pause)}, tooNew, func() error {
		_, err := p.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// Place creates a pod and returns the node that it is bound to. As long as events report that the
// pod does not fit, Place changes the nodes: a scheduler before 1.28 does not try such a pod again
// for minutes unless an object changes.
func (p *Plane) Place(ctx context.Context, t testing.TB, namespace string, pod *corev1.Pod) (node string) {
	t.Helper()
	p.Create(ctx, t, namespace, pod)
	run.Eventually(t, "pod "+pod.Name+" is bound", func(ctx context.Context) (bool, string) {
		got, err := p.Kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		node = got.Spec.NodeName
		if node != "" {
			return true, ""
		}
		failures := p.Failures(ctx, t, namespace, pod.Name)
		if len(failures) > 0 {
			p.Touch(ctx, t, pod.Spec.NodeSelector[GroupLabel])
		}
		return false, strings.Join(failures, "; ")
	})
	return node
}

// Touch changes a label of a group's nodes, which has schedulers look at pods again that did not
// fit.
func (p *Plane) Touch(ctx context.Context, t testing.TB, group string) {
	t.Helper()
	nodes, err := p.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: GroupLabel + "=" + group, Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("a node of group %s to touch: %d, %v", group, len(nodes.Items), err)
	}
	patch := fmt.Appendf(nil, `{"metadata": {"labels": {"touched": "%d"}}}`, time.Now().UnixNano())
	if _, err := p.Kube.CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Clear deletes the pods of namespaces, and the nodes of groups of the same name.
func (p *Plane) Clear(t testing.TB, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), run.Patience)
	defer cancel()
	for _, name := range names {
		DeletePods(ctx, t, p.Kube, name)
		if err := p.Kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: GroupLabel + "=" + name}); err != nil {
			t.Error(err)
		}
	}
}

// DeletePods deletes all pods of a namespace and waits until they are gone. The API server deletes
// the pods of a collection one after the other, so that many take longer than a request may on a
// slow machine; the next request deletes the remaining pods.
func DeletePods(ctx context.Context, t testing.TB, kube kubernetes.Interface, namespace string) {
	t.Helper()
	now := int64(0)
	run.Eventually(t, "the pods of "+namespace+" are gone", func(context.Context) (bool, string) {
		err := kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{})
		if err != nil && !apierrors.IsTimeout(err) {
			t.Fatal(err)
		}
		left, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return len(left.Items) == 0, fmt.Sprintf("%d are left", len(left.Items))
	})
}

// Unbound returns how many pods of a namespace have no node.
func (p *Plane) Unbound(ctx context.Context, t testing.TB, namespace string) int {
	t.Helper()
	list, err := p.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// Failures returns the messages of the FailedScheduling events of a pod. If name is empty, it
// returns the messages for all pods of the namespace.
func (p *Plane) Failures(ctx context.Context, t testing.TB, namespace, name string) (messages []string) {
	t.Helper()
	selector := fields.Set{"reason": "FailedScheduling"}
	if name != "" {
		selector["involvedObject.name"] = name
	}
	list, err := p.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

// PriorityClass makes a priority class.
func (p *Plane) PriorityClass(ctx context.Context, t testing.TB, name string, value int32) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	if _, err := p.Kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// WatchBound returns the events of the bound pods of a namespace until ctx ends. The API server
// ends a watch whose reader does not keep up; another one then continues.
func WatchBound(ctx context.Context, tb testing.TB, kube kubernetes.Interface, namespace string) <-chan watch.Event {
	tb.Helper()
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		tb.Fatal(err)
	}
	all := make(chan watch.Event)
	go func() {
		defer close(all)
		for version := list.ResourceVersion; ctx.Err() == nil; {
			events, err := kube.CoreV1().Pods(namespace).Watch(ctx,
				metav1.ListOptions{FieldSelector: "spec.nodeName!=", ResourceVersion: version})
			if err != nil {
				return // too few pods are then found
			}
			for event := range events.ResultChan() {
				pod, ok := event.Object.(*corev1.Pod)
				if !ok {
					return
				}
				version = pod.ResourceVersion
				select {
				case all <- event:
				case <-ctx.Done():
					events.Stop()
					return
				}
			}
		}
	}()
	return all
}

// BindingRate reads the events of bound pods until as many different ones have come, and returns
// how many were bound a second since the first. Without that many, it is 0; bound is their number.
func BindingRate(events <-chan watch.Event, pods int) (rate float64, bound int) {
	names := map[string]bool{}
	var first time.Time
	for event := range events {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		if len(names) == 0 {
			first = time.Now()
		}
		names[pod.Name] = true
		if len(names) == pods {
			return float64(pods) / time.Since(first).Seconds(), pods
		}
	}
	return 0, len(names)
}
