package lifecycle

import (
	"context"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// keepDeployed returns the spec with the settings of the deployed scheduler with that name, as an
// upgrade keeps them, if the spec has neither a file nor a configuration. A spec with only a
// configuration replaces the scheduler; settings that it loses are reported.
func keepDeployed(ctx context.Context, s *session.Session, d deploy.Deps, sp *spec.Spec) (*spec.Spec, error) {
	if sp.GivesFile() {
		return sp, nil
	}
	last, err := d.ReadLast(ctx, sp.Namespace, sp.Name)
	if err != nil {
		return nil, err
	}
	if last == nil && !sp.GivesConfiguration() {
		if near := nearDeployed(ctx, d, sp.Name); near != "" {
			s.Warn(fmt.Sprintf("scheduler %s is new and gets default settings: did you mean %s, which is deployed?", sp.Name,
				near))
		}
	}
	if last == nil || deploy.AppOf(last.Objects) == ownership.Extender {
		return sp, nil // another step refuses the name of an extender
	}
	if err = last.Damage; err == nil {
		var installed *deploy.Installed
		if installed, err = deploy.ReadInstalled(last); err == nil {
			return keepSettings(s, sp, installed, last.Number)
		}
	}
	if sp.GivesConfiguration() {
		return sp, nil
	}
	return nil, problem.WithHint(fmt.Errorf("keep the configuration of %s: %w", sp.Name, err),
		"specify one with --preset, --config or -f")
}

func keepSettings(s *session.Session, sp *spec.Spec, installed *deploy.Installed, revision int) (*spec.Spec, error) {
	kept, settings, err := sp.Keep(*installed)
	list := strings.Join(settings, ", ")
	switch {
	case err != nil || len(settings) == 0:
		return sp, err
	case sp.GivesConfiguration():
		s.Warn(fmt.Sprintf("settings of revision %d of %s are not kept: %s; name its file with -f to keep them: pmk-sched.yaml, "+
			"or the manifests that `pmk-sched migrate` read", revision, sp.Name, list))
		return sp, nil
	}
	s.Note(fmt.Sprintf("kept from revision %d of %s: %s; --preset default returns to the default configuration", revision,
		sp.Name, list))
	return kept, nil
}
