package apply

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// leaderRenewal is longer than the interval between a leader's renewals (2 s by default).
const leaderRenewal = 3 * time.Second

// DeleteLeaderLease deletes the Lease that the scheduler itself created for its leader election,
// which does not have our labels. Call it when the Deployment is gone. A Lease that is still
// renewed belongs to a running scheduler, and is Skipped. Whether it is renewed is seen, not
// concluded from its times, since the clock on the scheduler's node may differ.
func (c *Client) DeleteLeaderLease(ctx context.Context, ns, name string) (Change, error) {
	change := Change{Object: kubeapi.ObjectName("Lease", ns, name), Action: Absent}
	lease := &coordinationv1.Lease{}
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, lease); err != nil {
		return change, client.IgnoreNotFound(err)
	}
	if !free(lease) {
		if err := clock.Sleep(ctx, leaderRenewal); err != nil {
			return change, err
		}
	}
	err := c.api.Delete(ctx, lease, unchangedSince(lease))
	switch {
	case apierrors.IsConflict(err):
		change.Action, change.Note = Skipped, "still renewed by "+holderOf(lease)
		return change, nil
	case apierrors.IsNotFound(err):
		return change, nil
	case err == nil:
		change.Action = Deleted
	}
	return change, err
}
