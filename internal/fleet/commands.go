package fleet

import (
	"context"
	"errors"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Status reads each cluster's status or, with a name, only that scheduler's or extender's. Findings
// are part of a row's result, not an error.
func Status(
	ctx context.Context, s *session.Session, clusters []Cluster, o ReadOptions, name, namespace string,
) ([]Row[replace.Status], error) {
	return readAll(ctx, s, clusters, o, func(ctx context.Context, one *session.Session) (*replace.Status, error) {
		status, err := replace.ReadStatus(ctx, one, name, namespace)
		return status, withoutFindings(err)
	})
}

// withoutFindings returns an error from [replace.ReadStatus] without its findings.
func withoutFindings(err error) error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // it is joined by ReadStatus, not wrapped
	if !ok {
		return err
	}
	if _, findings := err.(*health.FindingsError); findings { //nolint:errorlint // see above
		return nil
	}
	var others []error
	for _, one := range joined.Unwrap() {
		others = append(others, withoutFindings(one))
	}
	return errors.Join(others...)
}

// Checks are the outcomes of the checks before a deployment.
type Checks struct {
	Outcomes []preflight.Outcome `json:"outcomes"`
	// Failed counts the failed checks.
	Failed int `json:"failed"`
}

// Check checks whether each cluster accepts the spec's scheduler. Failed checks are part of a row's
// result, not an error.
func Check(
	ctx context.Context, s *session.Session, clusters []Cluster, o ReadOptions, sp *spec.Spec,
) ([]Row[Checks], error) {
	return readAll(ctx, s, clusters, o, func(ctx context.Context, one *session.Session) (*Checks, error) {
		outcomes, err := lifecycle.Check(ctx, one, sp.Named(sp.Name, sp.Namespace), "")
		if outcomes == nil {
			return nil, err
		}
		checks := &Checks{Outcomes: outcomes}
		var failed *preflight.FailedError
		if errors.As(err, &failed) {
			checks.Failed, err = len(failed.Failed), nil
		}
		return checks, err
	})
}

// Detect inspects each cluster, without asking for the Go version that its release names.
func Detect(
	ctx context.Context, s *session.Session, clusters []Cluster, o ReadOptions, name, namespace string,
) ([]Row[inspect.Info], error) {
	return readAll(ctx, s, clusters, o, func(ctx context.Context, one *session.Session) (*inspect.Info, error) {
		cfg, err := one.Connect()
		if err != nil {
			return nil, err
		}
		requests := kubeapi.CountRequests(cfg)
		info, err := one.InspectWith(ctx, cfg,
			inspect.Options{Name: name, SchedulerNamespace: namespace, Usage: profiles.Usage})
		if info != nil {
			info.Requests = requests.Load()
		}
		return info, err
	})
}
