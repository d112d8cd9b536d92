//go:build linux && (cases || faults || labs)

package plugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// newPod is a pod for the deployed scheduler that one of the workers plays.
func newPod(name string) *corev1.Pod {
	no, now := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &now,
			Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
		},
	}
}

// namespace makes a namespace and waits until pods may be made in it.
func (n *node) namespace(t *testing.T, name string) string {
	t.Helper()
	_, err := n.Kube.CoreV1().Namespaces().Create(run.Context(t),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	run.Eventually(t, "namespace "+name+" has its account", func(context.Context) (bool, string) {
		_, err := n.Kube.CoreV1().ServiceAccounts(name).Get(run.Context(t), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return name
}

// create makes pods, several at a time.
func (n *node) create(t *testing.T, namespace string, pods ...*corev1.Pod) {
	t.Helper()
	ctx := run.Context(t)
	var group errgroup.Group
	group.SetLimit(8)
	for _, pod := range pods {
		group.Go(func() error {
			_, err := n.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// list returns the pods of a namespace.
func (n *node) list(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := n.Kube.CoreV1().Pods(namespace).List(run.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitBound waits until count pods of a namespace are bound, and returns all its pods.
func (n *node) awaitBound(t *testing.T, namespace string, count int) (pods []corev1.Pod) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("%d pods of %s are bound", count, namespace), func(context.Context) (bool, string) {
		pods = n.list(t, namespace)
		bound, waiting := 0, []string{}
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				bound++
			} else {
				waiting = append(waiting,
					fmt.Sprintf("%s (%s, created %s): %q", pod.Name, pod.UID, pod.CreationTimestamp, whyPending(pod)))
			}
		}
		return bound == count, fmt.Sprintf("%d of %d are bound; %s", bound, len(pods), strings.Join(waiting, ", "))
	})
	return pods
}

// whyPending returns the scheduler's message about a pod that it has not bound.
func whyPending(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// awaitRejected waits until the scheduler reports that a pod cannot be scheduled, with a message
// that contains because.
func (n *node) awaitRejected(t *testing.T, namespace, name, because string) {
	t.Helper()
	run.Eventually(t, "pod "+name+" is rejected", func(context.Context) (bool, string) {
		pod, err := n.Kube.CoreV1().Pods(namespace).Get(run.Context(t), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName == "" && strings.Contains(whyPending(*pod), because),
			pod.Spec.NodeName + " " + whyPending(*pod)
	})
}

// remove deletes all pods of a namespace and waits until they are gone.
func (n *node) remove(t *testing.T, namespace string) {
	t.Helper()
	controlplane.DeletePods(run.Context(t), t, n.Kube, namespace)
}

// place makes the scheduler place count pods at once, and counts them by node. Their names are new
// each time: kwok deletes a pod by its name after its deletion, also a new pod of that name
// (pkg/kwok/controllers/pod_controller.go, deleteResource).
func (n *node) place(t *testing.T, count int) map[string]int {
	t.Helper()
	namespace := n.namespace(t, "placed")
	var pods []*corev1.Pod
	for range count {
		pod := newPod("")
		pod.GenerateName = "pod-"
		pods = append(pods, pod)
	}
	n.create(t, namespace, pods...)
	placed := map[string]int{}
	for _, pod := range n.awaitBound(t, namespace, count) {
		placed[pod.Spec.NodeName]++
	}
	n.remove(t, namespace)
	return placed
}

// placesOn waits until pods are placed on exactly these nodes, and expects the same of the next
// pods: until a plugin knows the change, pods may go to any node, and afterwards only to these. By
// chance pods that may go to three nodes leave one of them out once in 700,000 times.
func (n *node) placesOn(t *testing.T, what string, nodes ...string) {
	t.Helper()
	place := func(context.Context) (bool, string) {
		placed := n.place(t, 12*len(nodes))
		ok := len(placed) == len(nodes)
		for _, node := range nodes {
			ok = ok && placed[node] > 0
		}
		return ok, fmt.Sprint(placed)
	}
	run.Eventually(t, what, place)
	if ok, placed := place(t.Context()); !ok {
		t.Errorf("%s: the next pods are placed on %s, want %v", what, placed, nodes)
	}
}
