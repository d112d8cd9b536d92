package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

const (
	// look is the time between two looks at the pods of a step.
	look = 500 * time.Millisecond
	// routeLooks is the number of looks at the pods for one at the route.
	routeLooks = 4
	// endTime bounds the end of a rollout, which is tried again until it succeeds.
	endTime = 5 * time.Minute
)

// step is the deployed revision of a scheduler with a route.
type step struct {
	share    int
	rollout  *v1alpha1.Rollout
	revision *apply.Revision
}

// readStep returns the deployed revision of a scheduler, or nil if there is none with a route.
func readStep(ctx context.Context, d deploy.Deps, namespace, name string) (*step, error) {
	last, err := d.ReadLast(ctx, namespace, name)
	if err != nil || last == nil {
		return nil, err
	}
	if err := deploy.CheckCurrent(last, namespace, name); err != nil {
		return nil, err
	}
	installed, err := deploy.ReadInstalled(last)
	if err != nil {
		return nil, err
	}
	spec := installed.Request.Spec
	if spec.Route == nil {
		return nil, nil
	}
	return &step{share: spec.Route.ShareOrDefault(), rollout: spec.Rollout, revision: last}, nil
}

// current returns the step that is deployed now.
func (r *run) current(ctx context.Context) (*step, error) {
	s, err := readStep(ctx, r.deps, r.result.Namespace, r.result.Name)
	if err == nil && s == nil {
		err = fmt.Errorf("scheduler %s has no deployed revision with a route any more", r.result.Name)
	}
	if err == nil {
		r.result.Share, r.result.Revision = s.share, s.revision.Number
	}
	return s, err
}

// follow judges each step from the given one on, until the rollout ends.
func (r *run) follow(ctx context.Context, s *step) error {
	if err := r.watch(ctx); err != nil {
		return r.interrupt(ctx, s, err)
	}
	r.pods.start(s.revision.Created)
	for began := s.revision.Created; ; began = time.Now() {
		decision, err := r.await(ctx, s, began)
		if err != nil {
			return r.interrupt(ctx, s, err)
		}
		if decision.Verdict != "" {
			return r.end(ctx, s, decision)
		}
		if s, err = r.set(ctx, s, decision.Share, v1alpha1.RolloutState{}); err != nil {
			return r.interrupt(ctx, s, err)
		}
		r.pods.begin(s.revision.Created)
	}
}

// watch follows the pods of the scheduler until ctx ends, unless the run follows them already.
func (r *run) watch(ctx context.Context) (err error) {
	if r.pods == nil {
		r.pods, err = observe(ctx, r.kube, r.result.Name)
	}
	return err
}

// await waits until the step is followed by something else.
func (r *run) await(ctx context.Context, s *step, began time.Time) (stage.Decision, error) {
	number, steps := r.rollout.Position(s.share)
	r.report("step %d of %d: a share of %d %% (revision %d)", number, steps, s.share, s.revision.Number)
	registration, err := r.registration(s)
	if err != nil {
		return stage.Decision{}, err
	}
	lost := ""
	for looks := 0; ; looks++ {
		if looks%routeLooks == 0 {
			lost = registration.lost(ctx)
		}
		now := time.Now()
		seen := stage.Observation{Elapsed: now.Sub(began), Pods: r.pods.look(now), Lost: lost}
		decision := stage.Next(r.rollout, s.share, seen)
		if decision.Share != s.share || decision.Verdict != "" {
			r.report("step %d of %d: %s", number, steps, decision.Reason)
			return decision, nil
		}
		if err := clock.Sleep(ctx, look); err != nil {
			return stage.Decision{}, err
		}
	}
}

// set deploys another share, and returns the step that is deployed then.
func (r *run) set(ctx context.Context, s *step, share int, state v1alpha1.RolloutState) (*step, error) {
	plan, err := deploy.PlanShare(s.revision, share, state)
	if err != nil {
		return s, err
	}
	outcome, err := deploy.SetShare(ctx, r.deps, plan)
	if err != nil {
		return s, fmt.Errorf("set the share of the route of scheduler %s to %d %%: %w", r.result.Name, share, err)
	}
	r.deployed = outcome.Revision
	next, err := r.current(ctx)
	if err != nil {
		return s, err
	}
	return next, nil
}

// interrupt ends the rollout because of an error, or because ctx has ended.
func (r *run) interrupt(ctx context.Context, s *step, cause error) error {
	ended := r.end(ctx, s, stage.Decision{Verdict: v1alpha1.RolloutInterrupted, Reason: cause.Error()})
	return errors.Join(cause, ended)
}

// end deploys the share of the end, and records the verdict. It tries again for some time, also if
// ctx has ended, unless another run has changed the scheduler.
func (r *run) end(ctx context.Context, s *step, d stage.Decision) error {
	r.result.Verdict, r.result.Reason = d.Verdict, d.Reason
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	for {
		now, err := r.current(limited)
		if err == nil && now.revision.Number != s.revision.Number && now.revision.Number != r.deployed {
			return problem.Errorf("see `pmk-sched history --name "+r.result.Name+"`",
				"scheduler %s is left as another run deployed it (revision %d): a share of %d %%", r.result.Name,
				now.revision.Number, now.share)
		}
		if err == nil {
			_, err = r.set(limited, now, d.Share, v1alpha1.RolloutState{Verdict: d.Verdict, Reason: d.Reason})
		}
		if err == nil {
			return nil
		}
		if problem.IsInvalid(err) || clock.Sleep(limited, look) != nil {
			return problem.WithHint(err, "end the route with `pmk-sched deploy --name "+r.result.Name+" --route share=0`")
		}
	}
}

// resume registers the route of a step again if an earlier run was killed while it registered
// another share.
func (r *run) resume(ctx context.Context, s *step) (*step, error) {
	revisions, err := r.deps.Cluster.Revisions(ctx, r.result.Namespace, r.result.Name)
	if err != nil || len(revisions) == 0 || revisions[len(revisions)-1].Status != apply.Pending {
		return s, err
	}
	return r.set(ctx, s, s.share, v1alpha1.RolloutState{})
}

// registration looks at what registers the route of a step.
type registration struct {
	api  *apply.Client
	want *unstructured.Unstructured
}

func (r *run) registration(s *step) (*registration, error) {
	at := slices.IndexFunc(s.revision.Objects, func(o *unstructured.Unstructured) bool {
		return route.IsRegistration(o.GetKind())
	})
	if at < 0 {
		return nil, fmt.Errorf("revision %d of %s registers no route", s.revision.Number, s.revision.Name)
	}
	return &registration{api: r.api, want: s.revision.Objects[at]}, nil
}

// lost returns why the route does not act as the step says, or "". An API server that does not
// answer is no reason.
func (r *registration) lost(ctx context.Context) string {
	live, err := r.api.Live(ctx, r.want)
	if err != nil {
		return ""
	}
	name := r.want.GetKind() + "/" + r.want.GetName()
	if live == nil {
		return name + " does not exist any more"
	}
	if live.GetAnnotations()[route.AnnotationRule] != r.want.GetAnnotations()[route.AnnotationRule] {
		return name + " was changed by others"
	}
	if since, suspended := suspension.Since(live); suspended {
		return "the route is suspended since " + since.UTC().Format(time.RFC3339) + ": no replica of the scheduler led"
	}
	return ""
}
