package deploy

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

func (d *deployRun) saveRevision(ctx context.Context) error {
	revisions, err := d.Cluster.Revisions(ctx, d.plan.Namespace, d.plan.Name)
	if err != nil {
		return err
	}
	if d.previous, err = d.Cluster.LastDeployed(ctx, d.plan.Namespace, d.plan.Name); err != nil {
		return err
	}
	if err := d.checkOwner(ctx, d.previous); err != nil {
		return err
	}
	if err := d.checkReplaced(); err != nil {
		return err
	}
	if err := d.confirmGained(ctx); err != nil {
		return err
	}
	unreadable := len(revisions) == 0 || apply.LastDeployed(revisions) != nil
	if d.lost = d.live && d.previous == nil && unreadable; d.lost {
		d.Warnf(
			"scheduler %s runs without a readable revision: if this deployment fails, the former state cannot be restored",
			d.plan.Name)
	}
	if n := len(revisions); n > 0 && revisions[n-1].Status == apply.Pending {
		d.Warnf("revision %d is pending: an earlier run was interrupted; continuing", revisions[n-1].Number)
	} else if d.previous != nil && !d.plan.rerecord && SameObjects(d.previous.Objects, d.plan.Objects) {
		d.current, d.outcome.Revision = d.previous, d.previous.Number
		return nil
	}
	record, err := d.plan.Record()
	if err != nil {
		return err
	}
	d.current, err = d.Cluster.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: d.plan.Name, Namespace: d.plan.Namespace,
			Description: d.plan.Description(), By: d.By, Origin: d.plan.Origin},
		Objects: d.plan.Objects, Record: record,
	})
	if err == nil {
		d.outcome.Revision = d.current.Number
	}
	return err
}

// checkReplaced refuses the plan if it was made from another revision than the current one:
// applying it would lose another run's changes.
func (d *deployRun) checkReplaced() error {
	const retry = "run the command again"
	current := 0
	if d.previous != nil {
		current = d.previous.Number
	}
	switch replaces := d.plan.Replaces; {
	case replaces == 0 || replaces == current || replaces == NoRevision && current == 0:
		return nil
	case replaces == NoRevision:
		return problem.Errorf(retry, "revision %d of %s was deployed by another run meanwhile", current, d.plan.Name)
	default:
		return problem.Errorf(retry, "revision %d of %s is not the current one any more: another run changed it", replaces,
			d.plan.Name)
	}
}

// again reports whether the plan is the last deployed revision.
func (d *deployRun) again() bool { return d.previous != nil && d.current == d.previous }

func (d *deployRun) markFailed(ctx context.Context, cause error) error {
	if d.current == nil || d.again() {
		return nil
	}
	return d.Cluster.SetRevisionStatus(ctx, &d.current.RevisionInfo, apply.Failed, cause.Error())
}

func (d *deployRun) markDeployed(ctx context.Context) error {
	if !d.verified.IsZero() {
		d.current.Verified = d.verified
	}
	if d.current.Status != apply.Deployed || !d.verified.IsZero() {
		if err := d.Cluster.SetRevisionStatus(ctx, &d.current.RevisionInfo, apply.Deployed, ""); err != nil {
			return err
		}
	}
	d.stable = true
	return nil
}
