package apply

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllerGrace is the default longest time without activity by the controller manager: a standby
// takes over its lease in 15 to 20 s.
const controllerGrace = 45 * time.Second

// controllerLease is the lease that the leading controller manager renews every 2 s.
var controllerLease = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"}

// controllerWatch observes whether the controller manager acts on one Deployment.
type controllerWatch struct {
	client  *Client
	since   time.Time // since when it has not observed the Deployment; zero: it has
	lease   string    // state of its lease then
	outages int64     // of the API server, until then
}

// idle returns why the controller manager does not act, or an empty text. behind reports that it
// has not observed the Deployment's last change. It does not act if that lasts for the grace period
// and its lease, where there is one, is not renewed meanwhile. Other machines' clocks do not
// matter.
func (w *controllerWatch) idle(ctx context.Context, behind bool) string {
	if !behind {
		w.since = time.Time{}
		return ""
	}
	now, outages := time.Now(), w.client.retry.Outages()
	if !w.since.IsZero() && outages == w.outages && now.Sub(w.since) < w.client.grace {
		return ""
	}
	state, described := w.client.controllerState(ctx)
	if w.since.IsZero() || outages != w.outages || state != w.lease {
		w.since, w.lease, w.outages = now, state, outages
		return ""
	}
	return fmt.Sprintf("the controller manager does not act: it has not observed the last change for %s, and %s",
		now.Sub(w.since).Round(time.Second), described)
}

// controllerState returns the state of the controller manager's lease, which differs after each
// renewal, and describes it for the case that it does not.
func (c *Client) controllerState(ctx context.Context) (state, described string) {
	lease := &coordinationv1.Lease{}
	if err := c.api.Get(ctx, controllerLease, lease); err != nil {
		return "", fmt.Sprintf("its Lease could not be read: %v", err)
	}
	return lease.ResourceVersion,
		fmt.Sprintf("its Lease %s, held by %q, was not renewed", controllerLease, holderOf(lease))
}

// isBehind reports whether the controller manager has not observed a Deployment's last change.
func isBehind(deployment *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration")
	return observed < deployment.GetGeneration()
}

// hasReplicaSets reports whether a Deployment has ReplicaSets.
func (c *Client) hasReplicaSets(ctx context.Context, deployment *unstructured.Unstructured) (bool, error) {
	sets := &appsv1.ReplicaSetList{}
	if err := c.api.List(ctx, sets, client.InNamespace(deployment.GetNamespace())); err != nil {
		return false, err
	}
	for i := range sets.Items {
		if owner := metav1.GetControllerOf(&sets.Items[i]); owner != nil && owner.UID == deployment.GetUID() {
			return true, nil
		}
	}
	return false, nil
}
