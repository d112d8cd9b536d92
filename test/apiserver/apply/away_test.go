//go:build linux

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

const awayLabel = "test-away"

// threeNodes makes nodes with a label, of which the last is not ready.
func threeNodes(ctx context.Context, t *testing.T) {
	t.Helper()
	nodes := server.Client(t).CoreV1().Nodes()
	for i := range 3 {
		node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("away-%d", i), Labels: map[string]string{awayLabel: ""},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: conditionStatus(i < 2)}}
		if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A rollout on the host network is complete although the replica of a node that is down waits for
// it.
func TestWaitStableDoesNotWaitForNodesThatAreDown(t *testing.T) {
	t.Parallel()
	ctx, client := testContext(t), newClient(t, server.Config())
	threeNodes(ctx, t)
	ns := server.Namespace(t)
	objs := objects(t, "away", ns, "a")
	deployment := find(t, objs, "Deployment")
	for path, value := range map[string]any{
		"spec.replicas": int64(3), "spec.template.spec.hostNetwork": true,
		"spec.template.spec.nodeSelector": map[string]any{awayLabel: ""},
	} {
		if err := unstructured.SetNestedField(deployment.Object, value, strings.Split(path, ".")...); err != nil {
			t.Fatal(err)
		}
	}
	if short, err := client.Shortage(ctx, deployment); err != nil || short != 1 {
		t.Errorf("shortage: got %d, %v", short, err)
	}
	if _, err := client.Apply(ctx, objs); err != nil {
		t.Fatal(err)
	}
	r := startRollout(ctx, t, ns, "away", "away-0")
	if err := r.status(ctx, true, running); err != nil {
		t.Fatal(err)
	}
	second, third := r.replica(ctx, "second", "away-1"), r.replica(ctx, "third", "")
	r.podStatus(ctx, second, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	r.podStatus(ctx, third, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available",
	})
	r.counts(ctx, 3, 2)

	var missing string
	options := quick
	options.OnMissing = func(state string) { missing = state }
	if err := client.WaitStable(ctx, ns, "away", options); err != nil {
		t.Fatal(err)
	}
	if want := "2 of 3 replicas are available: the others wait for nodes that are not ready or cordoned: away-2"; missing != want {
		t.Errorf("got %q, want %q", missing, want)
	}
	node, err := r.kube.CoreV1().Nodes().Get(ctx, "away-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	if _, err := r.kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.WaitStable(ctx, ns, "away", quick); err == nil ||
		!strings.Contains(err.Error(), apply.ReasonUnschedulable) {
		t.Errorf("with the node ready: got %v", err)
	}
}

// replica makes another pod of the ReplicaSet.
func (r *rollout) replica(ctx context.Context, name, node string) *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: r.ns, Labels: r.pod.Labels, OwnerReferences: r.pod.OwnerReferences,
	}, Spec: *r.pod.Spec.DeepCopy()}
	pod.Spec.NodeName = node
	made, err := r.kube.CoreV1().Pods(r.ns).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func (r *rollout) podStatus(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition) {
	r.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{condition}
	if _, err := r.kube.CoreV1().Pods(r.ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// counts sets the numbers of replicas in the status of the Deployment.
func (r *rollout) counts(ctx context.Context, replicas, available int32) {
	r.t.Helper()
	d, err := r.kube.AppsV1().Deployments(r.ns).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: available,
		AvailableReplicas:   available,
		UnavailableReplicas: replicas - available,
	}
	if _, err := r.kube.AppsV1().Deployments(r.ns).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}
