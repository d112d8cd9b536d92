//go:build linux && cases

package commands

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// Each case is the true cause of its findings. Before it, the scheduler has none.
func TestStatusFindingsOfAScheduler(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cause func(ctx context.Context, t *testing.T, s *second) error
		want  []health.Code
	}{
		{"object-deleted", func(ctx context.Context, t *testing.T, s *second) error {
			return server.Client(t).RbacV1().ClusterRoleBindings().Delete(ctx, s.name+"-as-kube-scheduler",
				metav1.DeleteOptions{})
		}, []health.Code{health.ObjectMissing}},
		{"labels-removed", func(ctx context.Context, t *testing.T, s *second) error {
			return patch(ctx, t, s.name+"-as-kube-scheduler", `{"metadata":{"labels":null}}`)
		}, []health.Code{health.ObjectForeign}},
		{"deployment-deleted", func(ctx context.Context, t *testing.T, s *second) error {
			return server.Client(t).AppsV1().Deployments(s.ns).Delete(ctx, s.name, metav1.DeleteOptions{})
		}, []health.Code{health.ObjectMissing}},
		{"deployment-begun", func(ctx context.Context, t *testing.T, s *second) error {
			_, err := s.client.SaveRevision(ctx, s.revision(t, s.plan))
			return err
		}, []health.Code{health.DeployUnfinished}},
		{"pod-deleted", func(ctx context.Context, t *testing.T, s *second) error {
			zero := int64(0)
			return server.Client(t).CoreV1().Pods(s.ns).Delete(ctx, s.name+"-1", metav1.DeleteOptions{GracePeriodSeconds: &zero})
		}, []health.Code{health.ReplicaMissing}},
		{"pod-unbound", func(ctx context.Context, t *testing.T, s *second) error {
			return s.unbind(ctx, t, nil)
		}, []health.Code{health.ReplicaUnbound}},
		{"pod-unschedulable", func(ctx context.Context, t *testing.T, s *second) error {
			return s.unbind(ctx, t, &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"})
		}, []health.Code{health.ReplicaUnbound}},
		{"image-missing", func(ctx context.Context, t *testing.T, s *second) error {
			s.status(ctx, t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}})
			return nil
		}, []health.Code{health.ImageUnavailable}},
		{"pod-crashing", func(ctx context.Context, t *testing.T, s *second) error {
			s.status(ctx, t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
			return nil
		}, []health.Code{health.ReplicaCrashing}},
		{"pod-not-ready", func(ctx context.Context, t *testing.T, s *second) error {
			s.status(ctx, t, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
			return nil
		}, []health.Code{health.ReplicaNotReady}},
		{"node-down", func(ctx context.Context, t *testing.T, s *second) error {
			return setNode(ctx, t, s.node, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}, []health.Code{health.NodeNotReady}},
		{"lease-deleted", func(ctx context.Context, t *testing.T, s *second) error {
			return server.Client(t).CoordinationV1().Leases(s.ns).Delete(ctx, s.name, metav1.DeleteOptions{})
		}, []health.Code{health.NoLeader}},
		{"lease-expired", func(_ context.Context, _ *testing.T, s *second) error {
			s.later = s.later.Add(time.Minute)
			return nil
		}, []health.Code{health.NoLeader}},
		{"lease-taken", func(ctx context.Context, t *testing.T, s *second) error {
			s.hold(ctx, t, "other_1")
			return nil
		}, []health.Code{health.LeaseForeign}},
		{"pod-ignored", func(ctx context.Context, t *testing.T, s *second) error {
			return waitingPod(ctx, t, s, "ignored", nil)
		}, []health.Code{health.PodsIgnored}},
		{"pod-refused", func(ctx context.Context, t *testing.T, s *second) error {
			return waitingPod(ctx, t, s, "refused", &corev1.PodCondition{Type: corev1.PodScheduled,
				Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
		}, nil},
		{"release-behind", func(_ context.Context, _ *testing.T, s *second) error {
			s.release.Minor++
			return nil
		}, []health.Code{health.ReleaseSkew}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := testContext(t)
			s := newSecond(ctx, t, tc.name)
			s.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{}, deploy.Facts{})
			s.expect(ctx, t)
			if err := tc.cause(ctx, t, s); err != nil {
				t.Fatal(err)
			}
			s.expect(ctx, t, tc.want...)
		})
	}
}

// unbind replaces the pod by one without a node, as after a rollout, with the condition that a
// scheduler set, if any.
func (s *second) unbind(ctx context.Context, t *testing.T, condition *corev1.PodCondition) error {
	t.Helper()
	zero, no := int64(0), false
	pods := server.Client(t).CoreV1().Pods(s.ns)
	if err := pods.Delete(ctx, s.name+"-1", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		return err
	}
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-1",
			Labels: map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: s.name}},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: ownership.Scheduler, Image: "localhost/s:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil || condition == nil {
		return err
	}
	pod.Status.Conditions = append(pod.Status.Conditions, *condition)
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// status changes the status of the pod to one that is not ready.
func (s *second) status(ctx context.Context, t *testing.T, state corev1.ContainerState) {
	t.Helper()
	pods := server.Client(t).CoreV1().Pods(s.ns)
	pod, err := pods.Get(ctx, s.name+"-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.ContainerStatuses[0].Ready, pod.Status.ContainerStatuses[0].State = false, state
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// patch changes a ClusterRoleBinding.
func patch(ctx context.Context, t *testing.T, binding, text string) error {
	t.Helper()
	bindings := server.Client(t).RbacV1().ClusterRoleBindings()
	_, err := bindings.Patch(ctx, binding, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	t.Cleanup(func() {
		if err := bindings.Delete(context.WithoutCancel(ctx), binding, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return err
}

// waitingPod creates a pod that names the scheduler, with a condition that a scheduler would have
// set.
func waitingPod(ctx context.Context, t *testing.T, s *second, name string, condition *corev1.PodCondition) error {
	t.Helper()
	no := false
	pods := server.Client(t).CoreV1().Pods(s.ns)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{SchedulerName: s.name, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: "main", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil || condition == nil {
		return err
	}
	pod.Status.Conditions = append(pod.Status.Conditions, *condition)
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
