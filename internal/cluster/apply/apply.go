package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const gonePollInterval = 250 * time.Millisecond

// Apply creates missing objects and updates objects that differ. It does not write objects that are
// equal.
//
// It first dry-runs all objects, as [Client.Plan] does, and changes nothing unless the API server
// accepts every object. Then it applies them in dependency order. Apply can be stopped at any point
// and run again. On an error the ChangeSet contains the changes made so far.
func (c *Client) Apply(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	steps, err := c.plan(ctx, objs, ownership.Manager)
	if err != nil {
		return nil, err
	}
	done := make(ChangeSet, 0, len(steps))
	for _, s := range steps {
		if err := c.applyOne(ctx, s); err != nil {
			return done, err
		}
		done = append(done, s.change)
	}
	return done, nil
}

func (c *Client) applyOne(ctx context.Context, s step) error {
	switch s.change.Action {
	case Unchanged:
		return nil
	case Recreated:
		if !isTerminating(s.live) {
			if err := c.deleteExactly(ctx, s.live, metav1.DeletePropagationBackground); err != nil {
				return err
			}
		}
		if err := c.waitGone(ctx, s.live); err != nil {
			return err
		}
	}
	if _, err := c.ssa.Apply(ctx, s.wanted, ssa.DefaultApplyOptions()); err != nil {
		return unwrapDryRun(s.change.Object, err)
	}
	c.log.Debug("applied", zap.String("object", s.change.Object), zap.String("action", string(s.change.Action)))
	return nil
}

// deleteExactly deletes live, but not another object that has taken its name.
func (c *Client) deleteExactly(ctx context.Context, live *unstructured.Unstructured,
	propagation metav1.DeletionPropagation) error {
	uid := live.GetUID()
	return client.IgnoreNotFound(c.api.Delete(ctx, live, client.Preconditions{UID: &uid},
		client.PropagationPolicy(propagation)))
}

func isTerminating(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GetDeletionTimestamp() != nil
}

// waitGone waits until live, which is being deleted, is gone, even if another object has taken its
// name. A Deployment without ReplicaSets is gone at once if the controller manager does not act:
// then there is nothing to delete before it. With ReplicaSets it is an error.
func (c *Client) waitGone(ctx context.Context, live *unstructured.Unstructured) error {
	watch := &controllerWatch{client: c}
	var last *unstructured.Unstructured
	err := wait.PollUntilContextCancel(ctx, gonePollInterval, true, func(ctx context.Context) (bool, error) {
		now, err := c.Live(ctx, live)
		if err != nil {
			return false, err
		}
		last = now
		if now == nil || now.GetUID() != live.GetUID() {
			return true, nil
		}
		if reason := watch.idle(ctx, live.GetKind() == "Deployment" && isBehind(now)); reason != "" {
			return false, c.deleteIdle(ctx, now, reason)
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil && last != nil {
		return fmt.Errorf("wait until %s is gone (finalizers %v): %w", nameOf(live), last.GetFinalizers(), ctx.Err())
	}
	return err
}

// deleteIdle deletes a Deployment without the controller manager, which does not act for that
// reason. The garbage collector would delete its ReplicaSets and pods first; without any, the
// Deployment alone can go.
func (c *Client) deleteIdle(ctx context.Context, deployment *unstructured.Unstructured, reason string) error {
	waits, err := c.hasReplicaSets(ctx, deployment)
	if err != nil {
		return err
	}
	if waits {
		return problem.Errorf(hints[ReasonControllersIdle], "delete the pods of %s: %s", nameOf(deployment), reason)
	}
	c.log.Warn("deleting without the controller manager", zap.String("object", nameOf(deployment)),
		zap.String("reason", reason))
	return c.deleteExactly(ctx, deployment, metav1.DeletePropagationBackground)
}
