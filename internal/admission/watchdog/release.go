package watchdog

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// releasesPerLook is how many pods of a scheduler are deleted at once. With a look each second the
// controllers of a cluster create them again about as fast.
const releasesPerLook = 25

// waitingPage is the number of waiting pods that are read at once.
const waitingPage = 500

// releaser deletes pods that wait for a scheduler that is lost, if a controller creates them again.
type releaser struct {
	kube   kubernetes.Interface
	events record.EventRecorder
	// kept are the pods that were left alone, which is said once.
	kept map[types.UID]bool
}

// release deletes some of the pods that were routed to a scheduler and never had a node. It returns
// how many it deleted, and how many it leaves alone.
func (r *releaser) release(ctx context.Context, scheduler string) (released, kept int, err error) {
	owners := owners{kube: r.kube, known: map[types.UID]owner{}}
	options := metav1.ListOptions{Limit: waitingPage, FieldSelector: "spec.nodeName=,spec.schedulerName=" + scheduler}
	for page, err := range kubeapi.Pages(ctx, r.kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return released, kept, fmt.Errorf("list the pods that wait for scheduler %s: %w", scheduler, err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if !waits(pod, scheduler) {
				continue
			}
			of, err := owners.of(ctx, pod)
			if err != nil {
				return released, kept, err
			}
			if of.reason != "" {
				kept++
				r.keep(pod, scheduler, of.reason)
				continue
			}
			if released == releasesPerLook {
				return released, kept, nil
			}
			deleted, err := r.delete(ctx, pod, of, scheduler)
			if err != nil {
				return released, kept, err
			}
			if deleted {
				released++
				owners.count(pod)
			}
		}
	}
	return released, kept, nil
}

// waits reports whether a pod was routed to the scheduler, and waits for it: pods with scheduling
// gates wait for something else.
func waits(pod *corev1.Pod, scheduler string) bool {
	return pod.Annotations[route.Annotation] == scheduler && pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" &&
		pod.Status.Phase == corev1.PodPending && len(pod.Spec.SchedulingGates) == 0
}

// delete deletes a pod unless it has changed: it may have got a node. It reports whether it did.
func (r *releaser) delete(ctx context.Context, pod *corev1.Pod, of owner, scheduler string) (bool, error) {
	err := r.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete Pod/%s/%s, which waits for scheduler %s: %w", pod.Namespace, pod.Name, scheduler, err)
	}
	r.events.Eventf(of.reference, corev1.EventTypeWarning, "PodReleased",
		"deleted a pod that waited for scheduler %s, of which no replica leads: it is created again for another scheduler",
		scheduler)
	return true, nil
}

// keep says once that a pod is left alone.
func (r *releaser) keep(pod *corev1.Pod, scheduler, reason string) {
	if r.kept[pod.UID] {
		return
	}
	r.kept[pod.UID] = true
	r.events.Eventf(pod, corev1.EventTypeWarning, "PodNotReleased",
		"waits for scheduler %s, of which no replica leads, and is not deleted: %s", scheduler, reason)
}

// owner is the controller of pods. Reason says why its pods are not deleted, or is empty.
type owner struct {
	reference *corev1.ObjectReference
	reason    string
	// left is how many pods may still be deleted; negative: any number.
	left int
}

// owners reads the controllers of pods, each once.
type owners struct {
	kube  kubernetes.Interface
	known map[types.UID]owner
}

func (o *owners) of(ctx context.Context, pod *corev1.Pod) (owner, error) {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return owner{reason: "no controller creates it again"}, nil
	}
	if found, ok := o.known[ref.UID]; ok {
		if found.left == 0 {
			found.reason = "its Job would fail: it counts deleted pods as failed ones"
		}
		return found, nil
	}
	found, err := o.read(ctx, pod.Namespace, ref)
	if err != nil {
		return owner{}, fmt.Errorf("read %s %s/%s, which controls a pod that waits: %w", ref.Kind, pod.Namespace, ref.Name,
			err)
	}
	found.reference = &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: pod.Namespace,
		Name: ref.Name, UID: ref.UID}
	o.known[ref.UID] = found
	return found, nil
}

// count records the deletion of a pod.
func (o *owners) count(pod *corev1.Pod) {
	ref := metav1.GetControllerOf(pod)
	if found := o.known[ref.UID]; found.left > 0 {
		found.left--
		o.known[ref.UID] = found
	}
}

// read reads a controller of Kubernetes. Others may not create their pods again.
func (o *owners) read(ctx context.Context, namespace string, ref *metav1.OwnerReference) (owner, error) {
	var live metav1.Object
	var err error
	left := -1
	switch ref.APIVersion + " " + ref.Kind {
	case "apps/v1 ReplicaSet":
		live, err = o.kube.AppsV1().ReplicaSets(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	case "apps/v1 StatefulSet":
		live, err = o.kube.AppsV1().StatefulSets(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	case "v1 ReplicationController":
		live, err = o.kube.CoreV1().ReplicationControllers(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	case "batch/v1 Job":
		job, failed := o.kube.BatchV1().Jobs(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		live, err = job, failed
		if failed == nil {
			left = retries(job)
		}
	default:
		return owner{reason: fmt.Sprintf("it is not known whether its controller, %s %s, creates it again", ref.Kind,
			ref.Name)}, nil
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.GetUID() != ref.UID:
		return owner{reason: "its controller does not exist any more"}, nil
	case err != nil:
		return owner{}, err
	case live.GetDeletionTimestamp() != nil:
		return owner{reason: "its controller is being deleted"}, nil
	case left == 0:
		return owner{reason: "its Job would fail: it counts deleted pods as failed ones"}, nil
	}
	return owner{left: left}, nil
}

// retries returns how many pods of a Job may be deleted: the Job controller counts them as failed
// ones (isPodFailed in pkg/controller/job/job_controller.go), and the Job fails with the first one
// above its limit.
func retries(job *batchv1.Job) int {
	limit := int32(6) // its default
	if job.Spec.BackoffLimit != nil {
		limit = *job.Spec.BackoffLimit
	}
	if job.Spec.BackoffLimitPerIndex != nil || job.Spec.PodFailurePolicy != nil {
		return 0
	}
	return max(0, int(limit-job.Status.Failed))
}
