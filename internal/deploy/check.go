package deploy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/tempdir"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/preflight"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Check checks whether the cluster accepts the plan, and which known problems of its release its
// configuration meets. The outcomes are nil if the checks could not be made.
func Check(
	ctx context.Context, d Deps, plan *Plan, autoscaler profiles.Autoscaler,
) ([]preflight.Outcome, error) {
	outcomes, failed := d.preflight(ctx, plan)
	if outcomes == nil {
		return nil, failed
	}
	known, err := knownProblems(plan)
	if err != nil {
		return nil, err
	}
	outcomes = append(outcomes, known...)
	if autoscaler != "" {
		differences, err := autoscalerOutcomes(plan, autoscaler)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, differences...)
	}
	return outcomes, failed
}

// preflight makes the preflight checks of a plan.
func (d Deps) preflight(ctx context.Context, plan *Plan) ([]preflight.Outcome, error) {
	checks, err := preflight.Checks(d.Config, preflight.Options{
		Name: plan.Name, Namespace: plan.Namespace, Image: plan.Scheduler.Image, Objects: plan.Objects,
		Port: plan.Scheduler.Port, TakenPorts: plan.TakenPorts, Endpoints: plan.Endpoints, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	if s := plan.Signature; s != nil {
		checks = append(checks, preflight.Check{
			Name: "image-signature", Description: "the image is signed by the required key",
			Run: func(context.Context) (string, error) { return "key " + s.Key, s.Err },
		})
	}
	return preflight.RunAll(ctx, checks, func(o preflight.Outcome) {
		if o.Status == preflight.Warned {
			d.Warnf("%s: %s", o.Description, o.Detail)
		}
	})
}

// gateFlags returns the flags with which the binary checks the configuration: feature gates, on
// which defaults depend. Others may name files.
func gateFlags(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args),
		func(arg string) bool { return !strings.HasPrefix(arg, "--feature-gates=") })
}

// checkConfiguration runs the scheduler's own binary to check the configuration, or warns that it
// cannot.
func checkConfiguration(ctx context.Context, d Deps, plan *Plan) (err error) {
	if plan.Extender != nil || plan.checked {
		return nil
	}
	dir, remove, err := tempdir.Make("check")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	binary, err := d.Binary(ctx, plan, dir)
	if binary.Missing != "" {
		return problem.Invalidf("build an image with `pmk-sched build`, or copy the scheduler there",
			"image %s has no %s, which the scheduler's pods run", plan.Scheduler.Image, binary.Missing)
	}
	if err == nil {
		d.Log.Info("checking the configuration with the scheduler's own binary", zap.String("binary", binary.Path),
			zap.String("from", binary.Origin))
		config := plan.Scheduler.Configuration
		err = configcheck.Check(ctx, binary, dir, configcheck.Request{
			Configuration: config.YAML, Kubeconfig: manifest.KubeconfigPath(plan.Name), Policy: config.Policy,
			Args: append(slices.Clone(config.Args), gateFlags(plan.Scheduler.Args)...), Warn: d.Warn,
		})
	}
	if errors.Is(err, configcheck.ErrNoBinary) {
		d.Warnf("the configuration was checked only with built-in rules for %s: %v", plan.Release, err)
		return nil
	}
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		d.Warnf("%v", err)
		return nil
	}
	return err
}
