package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// TakeOverOptions are the options of [TakeOver].
type TakeOverOptions struct {
	deploy.RunOptions
	// Backup is the file to which the former objects are saved. It must not exist.
	Backup string
	// Confirm asks the user before anything is stopped; the question completes "refusing to …".
	Confirm func(ctx context.Context, question string) error
}

// TakeOver deploys the spec's scheduler in place of one that was set up without pmk-sched, and
// verifies that it schedules. Everything that can be checked is checked while the former one runs.
// After a failure the former one runs again.
func TakeOver(
	ctx context.Context, s *session.Session, sp *spec.Spec, found *handmade.Scheduler, o TakeOverOptions,
) (*deploy.Plan, *deploy.Outcome, error) {
	r, err := prepare(ctx, s, sp)
	if err != nil {
		return nil, nil, err
	}
	if err := r.requireImages(); err != nil {
		return nil, nil, err
	}
	h, err := newHandmadeObjects(s, r.deps.Config)
	if err != nil {
		return nil, nil, err
	}
	former, err := h.existing(ctx, withNamespace(found.Objects, sp.Namespace))
	if err != nil {
		return nil, nil, err
	}
	if former, err = h.withoutSharedRoles(ctx, former); err != nil {
		return nil, nil, err
	}
	t := &takeOver{request: r, h: h, former: former, o: o}
	if err := t.check(ctx); err != nil {
		return nil, nil, err
	}
	err = steps.Run(ctx, t.steps(), s.OnStep)
	return t.plan, t.outcome, err
}

// withNamespace returns objects with the scheduler's namespace where they have none.
func withNamespace(objects []handmade.Object, namespace string) []handmade.Object {
	named := slices.Clone(objects)
	for i := range named {
		named[i].Namespace = cmp.Or(named[i].Namespace, namespace)
	}
	return named
}

// takeOver is one call of [TakeOver].
type takeOver struct {
	*request
	h       *handmadeObjects
	former  objectList
	planned *deploy.Plan // while the former scheduler runs
	o       TakeOverOptions
	plan    *deploy.Plan
	outcome *deploy.Outcome
}

// check makes all checks but the one that fails because of the former scheduler, and asks the user.
func (t *takeOver) check(ctx context.Context) (err error) {
	quiet := *t.request
	quiet.deps.Note, quiet.deps.Warn = nil, nil // the deployment prints them
	if t.planned, err = quiet.plan(ctx); err != nil || len(t.former) == 0 {
		return err
	}
	preflightChecks := t.deps.Preflight
	t.deps.Preflight = func(ctx context.Context, plan *deploy.Plan) error {
		return exceptNames(preflightChecks(ctx, plan))
	}
	if err := t.deps.Preflight(ctx, t.planned); err != nil {
		return err
	}
	return t.o.Confirm(ctx, fmt.Sprintf("replace %s of the former scheduler, and keep the former state in %s",
		plural.Count(len(t.former), "object"), t.o.Backup))
}

// exceptNames returns the error of checks without the one that the names are free: the former
// scheduler has them.
func exceptNames(err error) error {
	var failed *preflight.FailedError
	if !errors.As(err, &failed) {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(failed.Failed),
		func(o preflight.Outcome) bool { return o.Name == "names-free" })
	if len(others) == 0 {
		return nil
	}
	return &preflight.FailedError{Failed: others}
}

func (t *takeOver) steps() []steps.Step {
	deployed := steps.Step{Name: "deploy scheduler " + t.Request.Name, Do: t.deploy, Commit: true}
	if len(t.former) == 0 {
		return []steps.Step{deployed}
	}
	var first, rest objectList
	for _, o := range t.former {
		if t.inTheWay(o) {
			first = append(first, o)
		} else {
			rest = append(rest, o)
		}
	}
	t.o.Stop = &steps.Step{Name: "stop the former scheduler",
		Do:   func(ctx context.Context) error { return t.h.remove(ctx, first) },
		Undo: func(ctx context.Context, _ error) error { return t.h.restore(ctx, t.former) }}
	return []steps.Step{
		{Name: "save the former objects to " + t.o.Backup, Do: func(ctx context.Context) error {
			return save(ctx, t.o.Backup, t.former)
		}},
		deployed,
		{Name: "remove the other former objects", Do: func(ctx context.Context) error { return t.h.remove(ctx, rest) }},
	}
}

// inTheWay reports whether a former object runs the scheduler or has the name of a new one.
func (t *takeOver) inTheWay(former *unstructured.Unstructured) bool {
	if !slices.Contains([]string{"ConfigMap", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
		former.GetKind()) {
		return true
	}
	return slices.ContainsFunc(t.planned.Objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == former.GetKind() && o.GetName() == former.GetName() && o.GetNamespace() == former.GetNamespace()
	})
}

func (t *takeOver) deploy(ctx context.Context) (err error) {
	t.RunOptions = t.o.RunOptions
	t.Verify = proof(t.deps, t.RunOptions)
	t.plan, t.outcome, err = extenders.DeployScheduler(ctx, t.deps, t.SchedulerDeployment)
	return err
}

// GiveBack removes the spec's scheduler, and creates the objects again that [TakeOver] saved.
func GiveBack(ctx context.Context, s *session.Session, sp *spec.Spec, saved []byte, timeout time.Duration) error {
	objects, err := decodeObjects(saved)
	if err != nil {
		return err
	}
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	h, err := newHandmadeObjects(s, cfg)
	if err != nil {
		return err
	}
	if _, err := Uninstall(ctx, s, sp, timeout); err != nil {
		return err
	}
	return s.OnStep.Do("start the former scheduler", func() error {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return h.restore(limited, objects)
	})
}

// decodeObjects reads the objects in a manifest.
func decodeObjects(text []byte) (objectList, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects objectList
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, problem.Invalidf("pass the file that `migrate --apply` saved", "read the saved objects: %w", err)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}
