package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// AnnotationActivated is the annotation that ActivateByUpdate sets: the time of the call.
const AnnotationActivated = "pmk-sched.io/activated"

// ActivateByUpdate implements Handle.Activate. It changes a pod annotation, because every release's
// scheduler retries an unschedulable pod that changed.
//
// The annotation is written through the subresource status: system:kube-scheduler may patch
// pods/status, and not pods (bootstrappolicy/policy.go), and the subresource keeps annotation
// changes (podStatusStrategy in pkg/registry/core/pod/strategy.go). The scheduler handles the
// update in Update in scheduling_queue.go, in pkg/scheduler/internal/queue up to 1.31 and in
// pkg/scheduler/backend/queue from 1.32 on:
//
//   - Without queueing hints, the default up to 1.31, it compares the pods without resource
//     version, generation, status and, from 1.22 on, managed fields and finalizers (isPodUpdated).
//     Annotations remain, so the pod is queued.
//   - With queueing hints it asks the plugins that rejected the pod about a general pod update
//     (PodSchedulingPropertiesChange in pkg/scheduler/framework/events.go). It queues the pod for a
//     plugin that registered no events, and for one that registered pod updates. All pods that an
//     extender rejected are queued.
//
// A pod in its backoff is queued when that ends; 1.20 ends the backoff. The framework's own
// Handle.Activate is not used: it exists from 1.32 on only, it ends the backoff, and an extender
// cannot call it.
//
// It is not an error if the pod does not exist anymore.
func ActivateByUpdate(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	err := AnnotatePod(ctx, client, pod, map[string]string{AnnotationActivated: now}, "status")
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("activate pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// ActivateRule returns the permission for ActivateByUpdate. system:kube-scheduler has it; an
// extender does not.
func ActivateRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}
}

// AnnotatePod sets annotations on a pod, or on its subresource, with a merge patch. Without a
// resourceVersion it does not conflict with other writers. With the UID the API server rejects it
// for a new pod with the same name.
func AnnotatePod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, annotations map[string]string,
	subresources ...string) error {
	metadata := map[string]interface{}{"annotations": annotations}
	if pod.UID != "" {
		metadata["uid"] = pod.UID
	}
	patch, err := json.Marshal(map[string]interface{}{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.Namespace).Patch(
		ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}

// AnnotateRule returns the permission for AnnotatePod without subresources, which kube-scheduler
// does not have.
func AnnotateRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}
}
