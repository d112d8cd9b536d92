package lifecycle

import (
	"context"
	"errors"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Check checks whether the cluster accepts the scheduler, and which known problems of its release
// its configuration meets. If autoscaler is not empty, the outcomes include why it decides
// differently. They are nil if the checks could not be made.
func Check(
	ctx context.Context, s *session.Session, sp *spec.Spec, autoscaler profiles.Autoscaler,
) ([]preflight.Outcome, error) {
	r, err := newRequest(ctx, s, sp)
	if err != nil {
		return nil, err
	}
	if r.deps, err = deploy.Connect(s); err != nil {
		return nil, err
	}
	r.deps.Cluster = &readableRevisions{Cluster: r.deps.Cluster, warn: s.Warn}
	if r, err = r.complete(ctx, s, sp); err != nil {
		return nil, err
	}
	return showPlan(ctx, r, func(ctx context.Context, d deploy.Deps, plan *deploy.Plan) ([]preflight.Outcome, error) {
		return deploy.Check(ctx, d, plan, autoscaler)
	})
}

// readableRevisions are a cluster's revisions without those that the user may not read. The checks
// name the missing permission.
type readableRevisions struct {
	deploy.Cluster
	warn   func(text string)
	warned bool
}

func (c *readableRevisions) Revisions(ctx context.Context, ns, name string) ([]apply.RevisionInfo, error) {
	revisions, err := c.Cluster.Revisions(ctx, ns, name)
	return revisions, c.unlessForbidden(err)
}

func (c *readableRevisions) LastDeployed(ctx context.Context, ns, name string) (*apply.Revision, error) {
	last, err := c.Cluster.LastDeployed(ctx, ns, name)
	return last, c.unlessForbidden(err)
}

func (c *readableRevisions) unlessForbidden(err error) error {
	if !errors.As(err, new(*kubeapi.ForbiddenError)) {
		return err
	}
	if !c.warned {
		c.warn("the deployed scheduler, if there is one, is not compared: " + err.Error())
	}
	c.warned = true
	return nil
}
