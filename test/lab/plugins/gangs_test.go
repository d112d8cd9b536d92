//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	groupLabel = "scheduling.x-k8s.io/pod-group"
	// gangPort is a port of the node that every pod here asks for, so that each worker has room for one.
	gangPort = 7777
	// placeTime is how long a scheduler may take to place a group for which there is room: its pods may be in a back-off of ten seconds.
	placeTime = 30 * time.Second
)

// placesGangs expects three workers: two groups of two pods are placed one after the other, and one of four never, which keeps no other pod
// from being scheduled.
func (n *node) placesGangs(t *testing.T) {
	t.Helper()
	namespace := n.namespace(t, "gangs")
	n.create(t, namespace, append(gang("a", 2), gang("b", 2)...)...)
	first, second := "a", "b"
	run.Eventually(t, "one of two groups is placed", func(context.Context) (bool, string) {
		bound := n.boundByGroup(t, namespace)
		if bound["b"] == 2 {
			first, second = "b", "a"
		}
		return bound[first] == 2, fmt.Sprint(bound)
	})
	n.awaitRejected(t, namespace, second+"-0", "pod group")
	if bound := n.boundByGroup(t, namespace); bound[second] != 0 {
		t.Errorf("groups are placed in part: %v", bound)
	}
	n.removeGroup(t, namespace, first)
	gone := time.Now()
	run.Eventually(t, "the other group is placed", func(context.Context) (bool, string) {
		bound := n.boundByGroup(t, namespace)
		if bound[second] != 2 && time.Since(gone) > placeTime {
			t.Fatalf("group %s is not placed %s after %s was deleted: %v", second, placeTime, first, bound)
		}
		return bound[second] == 2, fmt.Sprint(bound)
	})
	t.Logf("Coscheduling: a group is placed %s after another one was deleted", time.Since(gone))
	n.remove(t, namespace)

	n.create(t, namespace, gang("huge", 4)...)
	n.awaitRejected(t, namespace, "huge-0", "pod group")
	n.create(t, namespace, gang("", 1)...)
	n.awaitBound(t, namespace, 1)
	if bound := n.boundByGroup(t, namespace); bound["huge"] != 0 {
		t.Errorf("a group of four is placed in part on three nodes: %v", bound)
	}
	n.remove(t, namespace)
	t.Log("Coscheduling places groups as a whole")
}

// gang returns the pods of a group, or one without a group.
func gang(name string, size int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range size {
		pod := newPod(fmt.Sprintf("%s-%d", name, i))
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: gangPort, HostPort: gangPort}}
		if name == "" {
			pod.Name = "single"
		} else {
			pod.Labels = map[string]string{groupLabel: name, "pmk-sched.io/min-member": strconv.Itoa(size)}
		}
		pods = append(pods, pod)
	}
	return pods
}

// boundByGroup counts the bound pods of each group.
func (n *node) boundByGroup(t *testing.T, namespace string) map[string]int {
	t.Helper()
	bound := map[string]int{}
	for _, pod := range n.list(t, namespace) {
		if pod.Spec.NodeName != "" {
			bound[pod.Labels[groupLabel]]++
		}
	}
	return bound
}

// removeGroup deletes the pods of a group.
func (n *node) removeGroup(t *testing.T, namespace, group string) {
	t.Helper()
	for _, pod := range n.list(t, namespace) {
		if strings.HasPrefix(pod.Name, group+"-") {
			if err := n.Kube.CoreV1().Pods(namespace).Delete(run.Context(t), pod.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
