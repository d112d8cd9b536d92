//go:build linux && labs

package arbiter

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// turn is the number of rounds after which the sides change.
const turn = 25

// outcome counts the rounds of a side.
type outcome struct{ rounds, rejected int }

// Each of ROUNDS (100) creates two pods that need more than half of a node each, one for each of
// two schedulers, at the same moment.
func kubeletsRejectNoPod(t *testing.T, n *labs.Node) {
	n.Kubectl(t, "create", "namespace", "race")
	without, with := &outcome{}, &outcome{}
	for total := rounds(t); with.rounds < total; {
		unregister(t, n)
		race(t, n, without)
		register(t, n)
		race(t, n, with)
	}
	t.Logf("pods that kubelets rejected: %d in %d rounds without the arbiter, %d in %d with it", without.rejected,
		without.rounds, with.rejected, with.rounds)
	if without.rejected == 0 {
		t.Error("the rounds prove nothing: no pod was rejected without the arbiter")
	}
	if with.rejected > 0 {
		t.Errorf("%d pods were rejected with the arbiter", with.rejected)
	}
}

func rounds(t *testing.T) (n int) {
	t.Helper()
	n = 100
	if text := os.Getenv("ROUNDS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil || n < 1 {
			t.Fatalf("invalid ROUNDS %q: must be a positive number", text)
		}
	}
	return n
}

// race runs the rounds of a turn.
func race(t *testing.T, n *labs.Node, o *outcome) {
	t.Helper()
	for range turn {
		o.rounds++
		o.rejected += round(t, n)
	}
}

// round creates the pods, and returns how many a kubelet rejected.
func round(t *testing.T, n *labs.Node) (rejected int) {
	t.Helper()
	pods := n.Kube.CoreV1().Pods("race")
	var all errgroup.Group
	for _, scheduler := range []string{corev1.DefaultSchedulerName, second} {
		all.Go(func() error {
			_, err := pods.Create(t.Context(), large(scheduler), metav1.CreateOptions{})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "kubelets decide about the pods", func(ctx context.Context) (bool, string) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		rejected = 0
		var seen []string
		decided := len(list.Items) == 2
		for i := range list.Items {
			pod := &list.Items[i]
			seen = append(seen, fmt.Sprintf("%s on %q: %s %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase,
				pod.Status.Reason, pod.Status.Message))
			if pod.Status.Phase == corev1.PodFailed && strings.HasPrefix(pod.Status.Reason, "OutOf") {
				rejected++
			}
			decided = decided && (pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodFailed)
		}
		return decided, strings.Join(seen, "; ")
	})
	now := int64(0)
	for _, scheduler := range []string{corev1.DefaultSchedulerName, second} {
		err := pods.Delete(t.Context(), "of-"+scheduler, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	run.Eventually(t, "the pods are gone", func(ctx context.Context) (bool, string) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, fmt.Sprint(err)
	})
	return rejected
}

// large is a pod that needs more than half of a worker's two processors.
func large(scheduler string) *corev1.Pod {
	none := int64(0)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-" + scheduler}, Spec: corev1.PodSpec{
		SchedulerName: scheduler, TerminationGracePeriodSeconds: &none, AutomountServiceAccountToken: new(bool),
		Containers: []corev1.Container{{Name: "main", Image: lab.PauseImage, ImagePullPolicy: corev1.PullNever,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1200m")}}}},
	}}
}
