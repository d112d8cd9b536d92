package controller

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/rollout"
)

// rolloutLook is the time between two looks at the pods of a rollout.
const rolloutLook = 2 * time.Second

// poll returns the rollout of the object. It remembers pods from one look to the next.
func (u *run) poll() (*rollout.Poll, error) {
	key := client.ObjectKeyFromObject(u.object)
	if found, ok := u.rollouts.Load(key); ok {
		return found.(*rollout.Poll), nil
	}
	made, err := rollout.NewPoll(&u.session, u.object.Namespace, u.object.Name)
	if err == nil {
		u.rollouts.Store(key, made)
	}
	return made, err
}

// atStep returns the spec at the step of its rollout.
func (u *run) atStep(ctx context.Context, sp *spec.Spec) (*spec.Spec, error) {
	if u.object.Spec.Rollout == nil {
		return sp, nil
	}
	p, err := u.poll()
	if err != nil {
		return nil, err
	}
	return p.AtStep(ctx, sp, u.object.Status.ObservedGeneration != u.object.Generation)
}

// rollOut judges the step of the object's rollout, and deploys what follows. It reports whether the
// rollout goes on.
func (u *run) rollOut(ctx context.Context) (running bool, err error) {
	status := &u.object.Status
	if u.object.Spec.Rollout == nil || status.Release == nil {
		u.rollouts.Delete(client.ObjectKeyFromObject(u.object))
		status.Rollout = nil
		return false, nil
	}
	p, err := u.poll()
	if err != nil {
		return false, err
	}
	before := status.Rollout
	result, running, err := p.Look(ctx, *u.object.Spec.Rollout)
	if err != nil {
		return true, fmt.Errorf("roll out scheduler %s: %w", u.object.Name, err)
	}
	if result.Revision == 0 {
		return false, nil // it was deployed before it had a rollout
	}
	status.Revision = result.Revision
	status.Rollout = &v1alpha1.RolloutStatus{Share: result.Share, Verdict: result.Verdict, Reason: result.Reason}
	status.Rollout.Step, status.Rollout.Steps = u.object.Spec.Rollout.Position(result.Share)
	if before == nil || *before != *status.Rollout {
		u.session.Log.Info("rollout", zap.Int("share", result.Share), zap.String("verdict", result.Verdict),
			zap.String("reason", result.Reason))
	}
	return running, nil
}
