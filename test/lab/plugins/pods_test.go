//go:build linux

package plugins

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func (m *master) namespace(t *testing.T, name string) string {
	t.Helper()
	_, err := m.kube.CoreV1().Namespaces().Create(patience(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	eventually(t, "namespace "+name+" has its account", func() (bool, string) {
		_, err := m.kube.CoreV1().ServiceAccounts(name).Get(patience(t), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	return name
}

// create makes pods, several at a time.
func (m *master) create(t *testing.T, namespace string, pods ...*corev1.Pod) {
	t.Helper()
	ctx := patience(t)
	var group errgroup.Group
	group.SetLimit(8)
	for _, pod := range pods {
		group.Go(func() error {
			_, err := m.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// list returns the pods of a namespace.
func (m *master) list(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := m.kube.CoreV1().Pods(namespace).List(patience(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitBound waits until so many pods of a namespace are bound, and returns all of them.
func (m *master) awaitBound(t *testing.T, namespace string, count int) (pods []corev1.Pod) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods of %s are bound", count, namespace), func() (bool, string) {
		pods = m.list(t, namespace)
		bound, why := 0, ""
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				bound++
			} else {
				why = whyPending(pod)
			}
		}
		return bound == count, fmt.Sprintf("%d are bound; %s", bound, why)
	})
	return pods
}

// whyPending is what the scheduler says of a pod that it has not bound.
func whyPending(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// awaitRejected waits until the scheduler says of a pod that it cannot be scheduled, because of what is given.
func (m *master) awaitRejected(t *testing.T, namespace, name, because string) {
	t.Helper()
	eventually(t, "pod "+name+" is rejected", func() (bool, string) {
		pod, err := m.kube.CoreV1().Pods(namespace).Get(patience(t), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName == "" && strings.Contains(whyPending(*pod), because), pod.Spec.NodeName + " " + whyPending(*pod)
	})
}

// remove deletes all pods of a namespace and waits until they are gone.
func (m *master) remove(t *testing.T, namespace string) {
	t.Helper()
	now := int64(0)
	err := m.kube.CoreV1().Pods(namespace).DeleteCollection(patience(t), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods of "+namespace+" are gone", func() (bool, string) {
		left := len(m.list(t, namespace))
		return left == 0, fmt.Sprint(left)
	})
}

// place has the scheduler place so many pods at once, and counts them by node.
func (m *master) place(t *testing.T, count int) map[string]int {
	t.Helper()
	namespace := m.namespace(t, "placed")
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, newPod(fmt.Sprintf("pod-%02d", i)))
	}
	m.create(t, namespace, pods...)
	placed := map[string]int{}
	for _, pod := range m.awaitBound(t, namespace, count) {
		placed[pod.Spec.NodeName]++
	}
	m.remove(t, namespace)
	return placed
}

// placesOn waits until pods are placed on exactly these nodes.
func (m *master) placesOn(t *testing.T, what string, nodes ...string) {
	t.Helper()
	const batch = 12
	eventually(t, what, func() (bool, string) {
		placed := m.place(t, batch)
		ok := len(placed) == len(nodes)
		for _, node := range nodes {
			ok = ok && placed[node] > 0
		}
		return ok, fmt.Sprint(placed)
	})
}
