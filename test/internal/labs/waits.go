//go:build linux

package labs

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// pause is the time between two requests to an API server that may be down.
	pause = 200 * time.Millisecond
	// mostAnswer bounds a request: one to a host that is lost may not be answered for long.
	mostAnswer = 2 * time.Second
)

// AwaitRestarted waits until the pods of a scheduler on the node, if there are any, were started
// after a time and are ready. A node that was lost for less than its grace period, and its pods,
// have the status of before for a while.
func (n *Node) AwaitRestarted(t testing.TB, scheduler string, since time.Time) {
	t.Helper()
	since = since.Truncate(time.Second) // as times in a status are
	run.Eventually(t, "the pods on "+n.NodeName+" run again", func(ctx context.Context) (bool, string) {
		pods, err := n.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
			LabelSelector: ownership.LabelInstance + "=" + scheduler, FieldSelector: "spec.nodeName=" + n.NodeName})
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Status.ContainerStatuses {
				if !c.Ready || c.State.Running == nil || c.State.Running.StartedAt.Time.Before(since) {
					return false, fmt.Sprintf("container %s of pod %s: %+v", c.Name, pod.Name, c.State)
				}
			}
		}
		return true, ""
	})
}

// LongestWait creates one pod after the other for a scheduler and the simulated workers until ctx
// ends, and sends the longest time from the creation of a pod until it had a node.
func (n *Node) LongestWait(ctx context.Context, t testing.TB, scheduler string) <-chan time.Duration {
	longest := make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		for i := 0; ctx.Err() == nil; i++ {
			most = max(most, n.waitOf(t, fmt.Sprintf("waits-%s-%d-%d", scheduler, time.Now().Unix(), i), scheduler))
		}
		longest <- most
	}()
	return longest
}

// waitOf creates a pod for a scheduler, and returns the time until it has a node. The API server
// may be down meanwhile.
func (n *Node) waitOf(t testing.TB, name, scheduler string) (waited time.Duration) {
	no, now := false, int64(0)
	pods := n.Kube.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, NodeSelector: map[string]string{"type": "kwok"},
		Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
	}}
	until := func(done func(ctx context.Context) bool) {
		err := wait.PollUntilContextTimeout(t.Context(), pause, run.Patience, true,
			func(ctx context.Context) (bool, error) {
				limited, stop := context.WithTimeout(ctx, mostAnswer)
				defer stop()
				return done(limited), nil
			})
		if err != nil && t.Context().Err() == nil {
			t.Errorf("pod %s: %v", name, err)
		}
	}
	until(func(ctx context.Context) bool {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	created := time.Now()
	until(func(ctx context.Context) bool {
		found, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err == nil && found.Spec.NodeName != ""
	})
	waited = time.Since(created)
	until(func(ctx context.Context) bool {
		err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		return err == nil || apierrors.IsNotFound(err)
	})
	return waited
}
