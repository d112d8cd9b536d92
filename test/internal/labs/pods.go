//go:build linux

package labs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// CreatePods creates pods for the simulated workers, which name the schedulers in turn, in a new
// namespace, and returns its name.
func (n *Node) CreatePods(ctx context.Context, t testing.TB, count int, schedulers ...string) (namespace string) {
	t.Helper()
	created, err := n.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pods-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	var all errgroup.Group
	all.SetLimit(20)
	for i := range count {
		all.Go(func() error {
			_, err := n.Kube.CoreV1().Pods(created.Name).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i)},
				Spec: corev1.PodSpec{
					SchedulerName:                schedulers[i%len(schedulers)],
					AutomountServiceAccountToken: &no,
					Containers:                   []corev1.Container{{Name: "main", Image: "localhost/none:v1"}},
				},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return created.Name
}

// Scale sets the replicas of a deployed scheduler. With 0 it waits until its pods are gone.
func (n *Node) Scale(t testing.TB, scheduler string, replicas int) {
	t.Helper()
	n.Kubectl(t, "scale", "deployment/"+scheduler, "-n", metav1.NamespaceSystem, fmt.Sprintf("--replicas=%d", replicas))
	if replicas > 0 {
		return
	}
	run.Eventually(t, "the scheduler is gone", func(ctx context.Context) (bool, string) {
		list, err := n.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, scheduler+"-") {
				return false, pod.Name
			}
		}
		return true, ""
	})
}
