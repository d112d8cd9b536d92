package lifecycle

import (
	"cmp"
	"context"
	"io"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// DryRun checks everything and returns the changes that Deploy would make.
func DryRun(ctx context.Context, s *session.Session, sp *spec.Spec) (apply.ChangeSet, error) {
	return preview(ctx, s, sp, deploy.DryRun)
}

// IsDeployed checks everything as DryRun does, and reports whether the deployed revision is what
// Deploy would deploy.
func IsDeployed(ctx context.Context, s *session.Session, sp *spec.Spec) (deployed bool, err error) {
	_, err = preview(ctx, s, sp, func(ctx context.Context, d deploy.Deps, plan *deploy.Plan) (apply.ChangeSet, error) {
		if plan.MissingImage != nil {
			return nil, plan.MissingImage
		}
		changes, err := deploy.DryRun(ctx, d, plan)
		if err != nil {
			return nil, err
		}
		last, err := d.ReadLast(ctx, plan.Namespace, plan.Name)
		deployed = err == nil && last != nil && last.Damage == nil && deploy.SameObjects(last.Objects, plan.Objects)
		return changes, err
	})
	return deployed, err
}

// Diff returns the changes that Deploy would make, with the differences.
func Diff(ctx context.Context, s *session.Session, sp *spec.Spec) (apply.ChangeSet, error) {
	return preview(ctx, s, sp, func(ctx context.Context, d deploy.Deps, plan *deploy.Plan) (apply.ChangeSet, error) {
		if plan.MissingImage != nil {
			d.Warnf("%v", plan.MissingImage)
		}
		return deploy.Diff(ctx, d, plan)
	})
}

// preview plans the spec's scheduler, and returns the result that show has for the plan.
func preview[T any](
	ctx context.Context, s *session.Session, sp *spec.Spec,
	show func(context.Context, deploy.Deps, *deploy.Plan) (T, error),
) (shown T, err error) {
	r, err := prepare(ctx, s, sp)
	if err != nil {
		return shown, err
	}
	return showPlan(ctx, r, show)
}

func showPlan[T any](
	ctx context.Context, r *request, show func(context.Context, deploy.Deps, *deploy.Plan) (T, error),
) (shown T, err error) {
	plan, err := r.plan(ctx)
	if err != nil {
		return shown, err
	}
	return show(ctx, r.deps, plan)
}

// Deploy deploys the spec's extenders, one after the other, and then the scheduler that calls them.
// A failure undoes everything.
func Deploy(
	ctx context.Context, s *session.Session, sp *spec.Spec, how deploy.RunOptions,
) (*deploy.Plan, *deploy.Outcome, error) {
	r, err := prepare(ctx, s, sp)
	if err != nil {
		return nil, nil, err
	}
	if err := r.requireImages(); err != nil {
		return nil, nil, err
	}
	r.RunOptions = how
	return extenders.DeployScheduler(ctx, r.deps, r.SchedulerDeployment)
}

// Verify verifies that the scheduler that o names binds a pod, and records the time in its current
// revision if there is one and the user may change it.
func Verify(ctx context.Context, s *session.Session, o verify.Options) (*verify.Result, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	o.Log, o.OnStep, o.MustExist = s.Log, s.OnStep, true
	result, err := verify.Scheduler(ctx, cfg, o)
	if err != nil {
		return result, err
	}
	if err := recordVerified(ctx, s, cfg, o); err != nil {
		s.Log.Debug("could not record the time of the verification", zap.Error(err))
	}
	return result, nil
}

// verifyTime is the time that a scheduler may take to bind a pod, in place of another one.
const verifyTime = time.Minute

// proof returns [deploy.RunOptions.Verify]: the scheduler binds a pod.
func proof(d deploy.Deps, how deploy.RunOptions) func(context.Context, *deploy.Plan) error {
	return func(ctx context.Context, plan *deploy.Plan) error {
		_, err := verify.Scheduler(ctx, d.Config, verify.Options{
			Name: plan.Name, Namespace: plan.Namespace, Timeout: min(cmp.Or(how.Timeout, verifyTime), verifyTime), Log: d.Log,
		})
		return err
	}
}

func recordVerified(ctx context.Context, s *session.Session, cfg *rest.Config, o verify.Options) error {
	client, err := apply.New(cfg, apply.Options{Log: s.Log})
	if err != nil {
		return err
	}
	revisions, err := client.Revisions(ctx, o.Namespace, o.Name)
	last := apply.LastDeployed(revisions)
	if err != nil || last == nil {
		return err
	}
	last.Verified = time.Now()
	return client.SetRevisionStatus(ctx, last, apply.Deployed, "")
}

// Logs prints the logs from a scheduler's replicas to w, of the last period since, or all logs if
// since is 0. With follow it prints new lines until ctx ends.
func Logs(
	ctx context.Context, s *session.Session, sp *spec.Spec, since time.Duration, follow bool, w io.Writer,
) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	return printLogs(ctx, cfg, logOptions{
		Name: sp.Name, Namespace: sp.Namespace, Container: manifest.ContainerName,
		Since: since, Follow: follow, Warn: s.Warn, Log: s.Log,
	}, w)
}

// Uninstall removes a scheduler and the extenders that were deployed with it. The timeout is for
// everything.
func Uninstall(
	ctx context.Context, s *session.Session, sp *spec.Spec, timeout time.Duration,
) (apply.ChangeSet, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	list, err := sp.Extenders()
	if err != nil {
		return nil, err
	}
	return uninstall(ctx, d, sp.Namespace, sp.Name, list, timeout)
}

// Remove removes s.Owner's scheduler, and the extenders that were deployed with it and that no
// other scheduler calls. It asks for no request: see [extenders.UninstallScheduler].
func Remove(ctx context.Context, s *session.Session, namespace, name string, timeout time.Duration) error {
	d, err := deploy.Connect(s)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = extenders.UninstallScheduler(limited, d, extenders.SchedulerRef{Namespace: namespace, Name: name})
	return err
}

func uninstall(
	ctx context.Context, d deploy.Deps, namespace, name string, list []extenders.Options, timeout time.Duration,
) (apply.ChangeSet, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	changes, err := deploy.Uninstall(limited, d, namespace, name)
	for _, o := range list {
		if err != nil {
			break
		}
		var removed apply.ChangeSet
		removed, err = extenders.Uninstall(limited, d, extenders.UninstallOptions{Name: o.Name, Namespace: o.Namespace})
		changes = append(changes, removed...)
	}
	return changes, err
}
