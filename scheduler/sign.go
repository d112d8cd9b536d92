package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// SignPlugin declares the part of a pod that the results of the plugin's PreFilter, Filter,
// PreScore and Score depend on.
//
// From 1.35 on the scheduler batches pods: it reuses the filtered and scored nodes of a pod for the pods with the same
// signature that follow it within half a second (OpportunisticBatching; pkg/scheduler/framework/runtime/batch.go). A
// plugin with one of these four extension points that does not implement SignPlugin disables this for all pods of its
// profile. That is the safe default: nothing is known about such a plugin. Earlier releases do not call Sign.
//
// PreFilter still runs for every pod, and Filter for the node that is reused. Not called are Filter for the other nodes
// and, for the node that is reused, PreScore and Score; up to 1.36 a node is reused only if the previous pod filled its
// node. A set of nodes that PreFilter returns is not applied to the reused node: implement Filter too, or return the set
// in Sign.
type SignPlugin interface {
	Plugin
	// Sign returns the part of the pod that the results depend on: two pods with equal parts must get the same results
	// for the same nodes in the same state. nil means that they do not depend on the pod. The part is encoded as JSON; sort
	// lists whose order does not matter. Sign runs when the pod is queued (in 1.35 for each attempt), so it must depend on
	// nothing but the pod and the plugin's arguments.
	//
	// A status other than nil means that the pod cannot be signed and is not batched. Return Unschedulable if placing
	// the previous pod changes the results for other nodes than that pod's own, as with pod affinity. Results that
	// depend on the pods of the node itself, as with its free resources, can be signed.
	Sign(ctx context.Context, pod *corev1.Pod) (part interface{}, status *Status)
}
