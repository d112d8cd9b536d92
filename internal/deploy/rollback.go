package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// RollbackOptions is the revision to return to.
type RollbackOptions struct {
	Name, Namespace string
	// To is the revision number. If it is 0, To is the last revision that was deployed before the
	// current one and differs from it.
	To int
	// Now is the time at which certificates must be valid.
	Now time.Time
}

// PlanRollback returns the plan that deploys an earlier revision again: image, configuration,
// permissions, credentials and extenders as they were. revisions are all of the scheduler's, oldest
// first; read reads one of them. PlanRollback does no other I/O. It refuses a revision that never
// ran, is damaged, does not fit the API server, or whose certificates have expired.
func PlanRollback(ctx context.Context, info *inspect.Info, revisions []apply.RevisionInfo, read ReadRevision,
	o RollbackOptions) (*Plan, *apply.Revision, error) {
	target, current, err := o.choose(ctx, revisions, read)
	if err != nil {
		return nil, nil, err
	}
	plan, err := PlanOf(target)
	if err != nil {
		return nil, nil, fmt.Errorf("roll back %s: %w", o.Name, err)
	}
	if plan.Extender != nil {
		return nil, nil,
			problem.Invalidf(
				"deploy it again with `pmk-sched extender deploy`, which keeps the certificates that schedulers trust",
				"%s is an extender, which cannot be rolled back", o.Name)
	}
	r := rollback{RollbackOptions: o, info: info, target: target, current: current, plan: plan}
	for _, check := range []func() error{r.checkRelease, r.checkConfiguration, r.checkCertificates, r.checkPort} {
		if err := check(); err != nil {
			return nil, nil, fmt.Errorf("roll back %s to revision %d: %w", o.Name, target.Number, err)
		}
	}
	plan.checked = false // by the scheduler of this release
	plan.Origin = "rollback to revision " + strconv.Itoa(target.Number)
	plan.Replaces, err = r.replaces(ctx, revisions, read)
	return plan, target, err
}

// ReadRevision reads a revision's objects.
type ReadRevision func(ctx context.Context, info apply.RevisionInfo) (*apply.Revision, error)

// replaces returns the number of the newest deployed revision that can be read. The target can.
func (r *rollback) replaces(ctx context.Context, revisions []apply.RevisionInfo, read ReadRevision) (int, error) {
	if r.current.Damage == nil {
		return r.current.Number, nil
	}
	newest, err := deployedBefore(ctx, revisions, r.current.Number, read, func(*apply.Revision) bool { return true })
	if err != nil || newest == nil {
		return r.target.Number, err
	}
	return newest.Number, nil
}

// choose returns the revision to return to, and the current one, which may be damaged.
func (o RollbackOptions) choose(ctx context.Context, revisions []apply.RevisionInfo, read ReadRevision) (target,
	current *apply.Revision, err error) {
	last := apply.LastDeployed(revisions)
	history := "see `" + (&Plan{Name: o.Name, Namespace: o.Namespace}).Command("history") + "`"
	if last == nil {
		return nil, nil, problem.Invalidf(history, "scheduler %s has no deployed revision in namespace %s", o.Name,
			o.Namespace)
	}
	if current, err = read(ctx, *last); err != nil {
		return nil, nil, err
	}
	if o.To == 0 {
		target, err = deployedBefore(ctx, revisions, current.Number, read,
			func(r *apply.Revision) bool { return !SameObjects(r.Objects, current.Objects) })
		if err == nil && target == nil {
			err = problem.Invalidf(history, "scheduler %s has no deployed revision that differs from the current one, %d",
				o.Name, current.Number)
		}
		return target, current, err
	}
	at := slices.IndexFunc(revisions, func(r apply.RevisionInfo) bool { return r.Number == o.To })
	if at < 0 {
		return nil, nil, problem.Invalidf(history, "scheduler %s has no revision %d in namespace %s: it has %s", o.Name, o.To,
			o.Namespace, numbers(revisions))
	}
	if target, err = read(ctx, revisions[at]); err != nil {
		return nil, nil, err
	}
	switch {
	case target.Damage != nil:
		return nil, nil, problem.Errorf(history, "revision %d of %s is damaged: %w", o.To, o.Name, target.Damage)
	case target.Status != apply.Deployed:
		return nil, nil, problem.Invalidf(history, "revision %d of %s was never stable: %s", o.To, o.Name,
			cmp.Or(firstLine(target.Reason), string(target.Status)))
	}
	return target, current, nil
}

// deployedBefore returns the newest deployed revision before a number that is not damaged and that
// accept accepts, or nil. It reads one revision after the other.
func deployedBefore(ctx context.Context, revisions []apply.RevisionInfo, number int, read ReadRevision,
	accept func(*apply.Revision) bool) (*apply.Revision, error) {
	for _, info := range slices.Backward(revisions) {
		if info.Number >= number || info.Status != apply.Deployed {
			continue
		}
		r, err := read(ctx, info)
		if err != nil {
			return nil, err
		}
		if r.Damage == nil && accept(r) {
			return r, nil
		}
	}
	return nil, nil
}

// numbers lists revisions: "1, 2 and 5".
func numbers(revisions []apply.RevisionInfo) string {
	var list []string
	for _, r := range revisions {
		list = append(list, strconv.Itoa(r.Number))
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " and " + list[last]
	}
	return strings.Join(list, "")
}

// rollback is the plan for one rollback.
type rollback struct {
	RollbackOptions
	info            *inspect.Info
	target, current *apply.Revision
	plan            *Plan
}

// checkRelease refuses a revision with another minor release than the API server, unless the
// current one has that minor too.
func (r *rollback) checkRelease() error {
	server := r.info.Release
	if r.plan.Release.MinorString() == server.MinorString() {
		return nil
	}
	const try = "deploy an image of the API server's release instead"
	warnings, err := versions.CheckSkew(r.plan.Release, server)
	if err != nil {
		return problem.WithHint(err, try)
	}
	if running, err := PlanOf(r.current); err == nil && running.Release.MinorString() == r.plan.Release.MinorString() {
		r.plan.Warnings = append(r.plan.Warnings, warnings...)
		return nil
	}
	reason := fmt.Sprintf("its kube-scheduler is %s, and the API server is %s", r.plan.Release, server)
	if refused := r.refusal(server); refused != nil {
		reason += ", whose kube-scheduler refuses its configuration: " + refused.Error()
	}
	return problem.Invalidf(try, "%s", reason)
}

// checkConfiguration applies the built-in rules; deploying the plan applies the scheduler's own.
func (r *rollback) checkConfiguration() error { return r.refusal(r.plan.Release) }

// refusal returns why a kube-scheduler of the release refuses the revision's configuration.
func (r *rollback) refusal(release versions.Release) error {
	request := profiles.ValidateRequest{Release: release, Source: r.plan.Scheduler.Configuration.YAML,
		SourceName: "configuration"}
	found, err := profiles.Validate(request)
	if err != nil {
		return err
	}
	request.Plugins = found.Plugins // the image has them
	if found, err = profiles.Validate(request); err != nil {
		return err
	}
	if !found.Valid() {
		return &profiles.Error{Name: request.SourceName, Problems: found.Problems}
	}
	return nil
}

// checkCertificates refuses credentials that the API server does not accept any more.
func (r *rollback) checkCertificates() error {
	first, err := inspect.FirstToExpire(r.target.Objects)
	if err != nil {
		return err
	}
	if first == nil || r.Now.IsZero() || r.Now.Before(first.Expires) {
		return nil
	}
	return problem.Invalidf("deploy it again with its image and configuration: that takes the node's current certificate",
		"the certificate in %s expired on %s", first.Object, first.Expires.UTC().Format(time.DateOnly))
}

// checkPort records the ports in use, which the preflight checks compare with the plan's port.
func (r *rollback) checkPort() error {
	for _, taken := range r.info.Scheduler.Taken {
		r.plan.TakenPorts[taken.Port] = taken.By
	}
	return nil
}

// firstLine returns a text's first line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
