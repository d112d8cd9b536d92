//go:build linux

package commands

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/replace/noderun"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const requestText = `{"version":"v1"}`

// nodeTask is a task for a node that only exists by name: the test does the work of its kubelet.
func nodeTask(node string) noderun.Task {
	return noderun.Task{
		Node: node, Image: "localhost/pmk-sched:v1", Scheduler: "localhost/scheduler:v1",
		Programs:   []string{"kube-scheduler"},
		Kubeconfig: "/etc/kubernetes/admin.conf", Directories: []string{"/etc/kubernetes"},
		Created: []string{"/var/lib/pmk-sched"},
		Request: []byte(requestText), Timeout: time.Minute,
	}
}

// playKubelet acts as the kubelet for the pod of a task, until the test ends: it reports the status
// that act sets as soon as the Secret of the pod exists, and deletes a deleted pod.
func playKubelet(ctx context.Context, t *testing.T, name string, act func(status *corev1.PodStatus)) {
	t.Helper()
	kube := server.Client(t).CoreV1()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := kube.ServiceAccounts(noderun.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	once := func() error {
		pods := kube.Pods(noderun.Namespace)
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil:
			now := int64(0)
			err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		case len(pod.Status.ContainerStatuses) > 0:
			return nil
		}
		secret, err := kube.Secrets(noderun.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || string(secret.Data["request.json"]) != requestText {
			return errors.Join(err, errors.New("the pod has no Secret with the request"))
		}
		act(&pod.Status)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := once(); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("play the kubelet: %v", err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// leftOnNode lists the pods and Secrets that tasks left.
func leftOnNode(ctx context.Context, t *testing.T) (left []string) {
	t.Helper()
	selector := metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=node-run"}
	pods, err := server.Client(t).CoreV1().Pods(noderun.Namespace).List(ctx, selector)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := server.Client(t).CoreV1().Secrets(noderun.Namespace).List(ctx, selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		left = append(left, "pod "+pod.Name)
	}
	for _, secret := range secrets.Items {
		left = append(left, "Secret "+secret.Name)
	}
	return left
}

// The API server accepts the pod, and its report is read.
func TestATaskOnANodeIsRunByAPodThatIsRemoved(t *testing.T) {
	ctx := testContext(t)
	playKubelet(ctx, t, "pmk-sched-run-cp-a", func(status *corev1.PodStatus) {
		status.Phase = corev1.PodSucceeded
		status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pmk-sched",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"result":{"node":"cp-a"}}`}}}}
	})
	report, err := noderun.New(server.Client(t), zap.NewNop()).Run(ctx, nodeTask("cp-a"))
	if err != nil || string(report.Result) != `{"node":"cp-a"}` {
		t.Errorf("got %+v, %v", report, err)
	}
	if left := leftOnNode(ctx, t); left != nil {
		t.Errorf("left: %v", left)
	}
}

// A pod that does not start, and one whose run is interrupted, are removed too.
func TestAPodOfATaskIsRemovedAfterAFailure(t *testing.T) {
	t.Run("an image is missing", func(t *testing.T) {
		ctx := testContext(t)
		playKubelet(ctx, t, "pmk-sched-run-cp-b", func(status *corev1.PodStatus) {
			waiting := &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull", Message: "not present"}
			status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "tool", Image: "localhost/pmk-sched:v1",
				State: corev1.ContainerState{Waiting: waiting}}}
			status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pmk-sched",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
		})
		_, err := noderun.New(server.Client(t), zap.NewNop()).Run(ctx, nodeTask("cp-b"))
		if err == nil || !strings.Contains(err.Error(), "ErrImageNeverPull: not present") {
			t.Errorf("got %v", err)
		}
		if left := leftOnNode(ctx, t); left != nil {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("the run is interrupted", func(t *testing.T) {
		ctx := testContext(t)
		playKubelet(ctx, t, "pmk-sched-run-cp-c", func(status *corev1.PodStatus) {
			status.Phase = corev1.PodRunning
			status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pmk-sched",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
		interrupted, interrupt := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := noderun.New(server.Client(t), zap.NewNop()).Run(interrupted, nodeTask("cp-c"))
			ended <- err
		}()
		run.Eventually(t, "the pod runs", func(ctx context.Context) (bool, string) {
			pod, err := server.Client(t).CoreV1().Pods(noderun.Namespace).Get(ctx, "pmk-sched-run-cp-c", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase)
		})
		interrupt()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if left := leftOnNode(ctx, t); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}
