package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// State is the result of a rollout on one cluster.
type State string

// Values of State.
const (
	Done      State = "done"      // changed, and verified
	Unchanged State = "unchanged" // up to date before, and verified
	Failed    State = "failed"
	Pending   State = "pending" // not tried: the rollout was stopped before
)

// Turn is one cluster in a rollout.
type Turn struct {
	Cluster string `json:"cluster"`
	// Wave is the value of the label that orders the clusters.
	Wave  string `json:"wave,omitempty"`
	State State  `json:"state"`
	// Release and Image of the scheduler, and its revision.
	Release  string   `json:"release,omitempty"`
	Image    string   `json:"image,omitempty"`
	Revision int      `json:"revision,omitempty"`
	Changes  []string `json:"changes,omitempty"`
	Error    string   `json:"error,omitempty"`
	Hints    []string `json:"hints,omitempty"`
	Seconds  float64  `json:"seconds,omitempty"`
}

// RolloutOptions order and bound a rollout.
type RolloutOptions struct {
	// Wave is the label that orders the clusters. If it is empty, they are ordered by name.
	Wave string
	// MaxFailures is the number of clusters that may fail before the rollout stops.
	MaxFailures int
	Deploy      deploy.RunOptions
	// VerifyTimeout bounds the wait until a verification's pod is bound.
	VerifyTimeout time.Duration
	// OnTurn is called after each cluster.
	OnTurn func(Turn)
}

// RolloutError is returned when clusters failed.
type RolloutError struct {
	Failed, Pending, All int
	// Stopped is set if the rollout was stopped because too many clusters failed.
	Stopped bool
}

func (e *RolloutError) Error() string {
	text := fmt.Sprintf("%d of %s failed", e.Failed, plural.Count(e.All, "cluster"))
	if e.Stopped {
		text += fmt.Sprintf("; stopped, %s not tried", plural.Phrase(e.Pending, "cluster was", "clusters were"))
	}
	return text
}

// Hint returns an instruction for the user.
func (e *RolloutError) Hint() string {
	return "the clusters that failed have their former scheduler; correct the cause and run the command again: " +
		"clusters that are up to date are only verified"
}

// Deploy deploys the spec's scheduler on one cluster after the other, and verifies that it binds a
// pod; otherwise that cluster's former revision is restored. It stores nothing: run again, it
// changes only clusters that differ. The error is a [*RolloutError] if clusters failed.
func Deploy(
	ctx context.Context, s *session.Session, clusters []Cluster, sp *spec.Spec, o RolloutOptions,
) ([]Turn, error) {
	return roll(ctx, s, clusters, o, func(ctx context.Context, one *session.Session, t *Turn) error {
		how := o.Deploy
		how.Verify = func(ctx context.Context, plan *deploy.Plan) error {
			cfg, err := one.Connect()
			if err == nil {
				_, err = verify.Scheduler(ctx, cfg, o.verification(one, plan.Name, plan.Namespace))
			}
			return err
		}
		plan, outcome, err := lifecycle.Deploy(ctx, one, sp.Named(sp.Name, sp.Namespace), how)
		if err != nil {
			return err
		}
		t.Release, t.Image = plan.Release.String(), plan.Scheduler.Image
		t.record(outcome)
		return nil
	})
}

// Upgrade upgrades a scheduler to the API server's release on one cluster after the other. It
// verifies and is run again as [Deploy].
func Upgrade(
	ctx context.Context, s *session.Session, clusters []Cluster, up lifecycle.UpgradeOptions, o RolloutOptions,
) ([]Turn, error) {
	return roll(ctx, s, clusters, o, func(ctx context.Context, one *session.Session, t *Turn) error {
		report, outcome, err := lifecycle.RunUpgrade(ctx, one, o.upgrade(up))
		if err != nil {
			return err
		}
		t.Release, t.Image = report.Target, report.Image
		t.record(outcome)
		if report.Due { // and verified
			t.Image = report.NewImage
			return nil
		}
		_, err = lifecycle.Verify(ctx, one, o.verification(one, report.Name, report.Namespace))
		return err
	})
}

// upgrade returns the options to upgrade one cluster, which has its own copy of the spec.
func (o RolloutOptions) upgrade(up lifecycle.UpgradeOptions) lifecycle.UpgradeOptions {
	up.Spec, up.Deploy = up.Spec.Named(up.Spec.Name, up.Spec.Namespace), o.Deploy
	return up
}

func (o RolloutOptions) verification(s *session.Session, name, namespace string) verify.Options {
	return verify.Options{Name: name, Namespace: namespace, Timeout: o.VerifyTimeout, Log: s.Log}
}

// record adds a deployment's outcome.
func (t *Turn) record(outcome *deploy.Outcome) {
	t.Revision, t.State = outcome.Revision, Unchanged
	for _, change := range outcome.Changes {
		if (apply.ChangeSet{change}).Changed() {
			t.State = Done
			t.Changes = append(t.Changes, change.Object+" "+string(change.Action))
		}
	}
}

// roll calls act for one cluster after the other until too many have failed or ctx ends.
func roll(
	ctx context.Context, s *session.Session, clusters []Cluster, o RolloutOptions,
	act func(ctx context.Context, one *session.Session, t *Turn) error,
) ([]Turn, error) {
	if o.Wave != "" {
		if err := sortByWave(clusters, o.Wave); err != nil {
			return nil, err
		}
	}
	turns := make([]Turn, len(clusters))
	outcome := &RolloutError{All: len(clusters)}
	for i, c := range clusters {
		t := &turns[i]
		*t = Turn{Cluster: c.Name, Wave: c.Labels[o.Wave], State: Pending}
		if outcome.Stopped || ctx.Err() != nil {
			outcome.Pending++
			continue
		}
		began := time.Now()
		if err := turn(ctx, s, c, t, act); err != nil {
			t.State, t.Error, t.Hints = Failed, err.Error(), problem.Hints(err)
			outcome.Failed++
			outcome.Stopped = outcome.Failed > o.MaxFailures && i < len(clusters)-1
		}
		t.Seconds = time.Since(began).Seconds()
		o.OnTurn(*t)
	}
	switch {
	case ctx.Err() != nil:
		return turns, ctx.Err()
	case outcome.Failed > 0:
		return turns, outcome
	}
	return turns, nil
}

// turn calls act for one cluster, whose name is in its steps and messages.
func turn(
	ctx context.Context, s *session.Session, c Cluster, t *Turn,
	act func(ctx context.Context, one *session.Session, t *Turn) error,
) error {
	one, err := c.session(s)
	if err != nil {
		return err
	}
	one.OnStep = func(name string) func(error) { return s.OnStep(c.Name + ": " + name) }
	one.Warn = func(text string) { s.Warn(c.Name + ": " + text) }
	one.Note = func(text string) { s.Note(c.Name + ": " + text) }
	return act(ctx, one, t)
}
