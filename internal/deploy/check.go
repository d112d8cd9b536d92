package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
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
	answers, err := d.askExtenders(ctx, plan)
	if err != nil {
		return nil, err
	}
	known, err := knownProblems(plan)
	if err != nil {
		return nil, err
	}
	outcomes = slices.Concat(outcomes, answers, known)
	if autoscaler != "" {
		differences, err := autoscalerOutcomes(plan, autoscaler)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, differences...)
	}
	return outcomes, failed
}

// askExtenders asks a plan's extenders that exist already.
func (d Deps) askExtenders(ctx context.Context, plan *Plan) ([]preflight.Outcome, error) {
	var called []preflight.CalledExtender
	for _, source := range [][]byte{plan.Scheduler.Configuration.YAML, plan.Scheduler.Configuration.Policy} {
		extenders, err := profiles.Extenders(source)
		if err != nil {
			return nil, err
		}
		for _, e := range extenders {
			if slices.ContainsFunc(plan.Scheduler.Wirings,
				func(w manifest.Wiring) bool { return w.Extender.URLPrefix == e.URLPrefix }) {
				continue // pmk-sched deploys it
			}
			one := preflight.CalledExtender{Extender: e}
			for name, client := range plan.Scheduler.ExtenderClients {
				if cert, _ := manifest.ExtenderClientPaths(name); e.TLS != nil && e.TLS.CertFile == cert {
					one.Cert, one.Key = client.Cert, client.Key
				}
			}
			called = append(called, one)
		}
	}
	checks, err := preflight.ExtenderChecks(d.Config, plan.Name, called)
	if err != nil {
		return nil, err
	}
	return preflight.RunAll(ctx, checks, d.warnOutcome)
}

// warnOutcome prints a check that is a warning.
func (d Deps) warnOutcome(o preflight.Outcome) {
	if o.Status == preflight.Warned {
		d.Warnf("%s: %s", o.Description, o.Detail)
	}
}

// preflight makes the preflight checks for a plan.
func (d Deps) preflight(ctx context.Context, plan *Plan) ([]preflight.Outcome, error) {
	checks, err := preflight.Checks(d.Config, preflight.Options{
		Name: plan.Name, Namespace: plan.Namespace, Image: plan.Scheduler.Image, Objects: plan.Objects,
		Architectures: plan.architectures(), Port: plan.Scheduler.Port, TakenPorts: plan.TakenPorts,
		Endpoints: plan.Endpoints, Log: d.Log,
	})
	if err != nil {
		return nil, err
	}
	if s := plan.Signature; s != nil {
		checks = append(checks, preflight.Check{
			Name: "image-signature", Description: "every image is signed by the required key",
			Run: func(context.Context) (string, error) { return "key " + s.Key, s.Err },
		})
	}
	if err := plan.MissingImage; err != nil {
		checks = append(checks, preflight.Check{
			Name: "image-available", Description: "the image is on this node or in its registry",
			Run: func(context.Context) (string, error) { return "", err },
		})
	}
	return preflight.RunAll(ctx, checks, d.warnOutcome)
}

// compareRelease compares a plan's release with the version that its image's program prints, or
// with the image's label; unread is the error from reading the version. It returns a warning if
// neither is a Kubernetes release, or if it is another patch of the API server's release, which was
// assumed because the user named none.
func (p *Plan) compareRelease(output string, unread error, label string) (warning string, err error) {
	warning, established, err := p.releaseCheck().CompareOutput(output, unread, label)
	if established || err != nil {
		return warning, err
	}
	seen := fmt.Sprintf("its program prints %q", output)
	if unread != nil {
		seen = unread.Error()
	}
	return fmt.Sprintf("the release of image %s is unknown, and %s was assumed: %s", p.Scheduler.Image, p.Release, seen), nil
}

func (p *Plan) releaseCheck() configcheck.ReleaseCheck {
	named := IsChosen(p.from.Branch)
	return configcheck.ReleaseCheck{Image: p.Scheduler.Image, Want: p.Release, Exact: named, Branch: true}
}

// architectures returns the image's architectures, or nil if unknown.
func (p *Plan) architectures() []string {
	if p.Extender != nil {
		return p.Extender.Architectures
	}
	return p.Scheduler.Architectures
}

// ProgramCheck is the check of a scheduler's flags and configuration by its image's program.
type ProgramCheck struct {
	configcheck.Request
	// Compare compares the release in the output of --version, or in the image's label. unread is the
	// error from reading the output.
	Compare func(output string, unread error, label string) (warning string, err error)
	// FlagsHint is the hint for a flag that the program refuses.
	FlagsHint string
}

// CheckProgram compares a program's release, and has it read the flags and the configuration. Two
// runs distinguish a program of another release from wrong flags. dir is a private directory.
func CheckProgram(ctx context.Context, binary configcheck.Binary, dir string, c ProgramCheck) error {
	output, err := configcheck.Version(ctx, binary, dir)
	if ctx.Err() != nil || errors.Is(err, configcheck.ErrNoBinary) {
		return err
	}
	warning, failed := c.Compare(output, err, binary.Label)
	if failed != nil {
		return failed
	}
	if warning != "" {
		c.Warn(warning)
	}
	if _, err := configcheck.Version(ctx, binary, dir, c.Args...); err != nil {
		return problem.WithHint(err, c.FlagsHint)
	}
	err = configcheck.Check(ctx, binary, dir, c.Request)
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		c.Warn(err.Error())
		return nil
	}
	return err
}

// checkWithProgram checks a plan with its image's program.
func checkWithProgram(ctx context.Context, d Deps, plan *Plan, binary configcheck.Binary, dir string) error {
	flags, err := plan.Scheduler.Flags()
	if err != nil {
		return err
	}
	config := plan.Scheduler.Configuration
	return CheckProgram(ctx, binary, dir, ProgramCheck{
		Request: configcheck.Request{Configuration: config.YAML, Kubeconfig: manifest.KubeconfigPath(plan.Name),
			Policy: config.Policy, Args: flags, Warn: func(text string) { d.Warnf("%s", text) }},
		Compare:   plan.compareRelease,
		FlagsHint: "correct spec.args; `kube-scheduler --help` of the image lists its flags",
	})
}

// checkConfiguration runs the scheduler's own binary to check its release, flags and configuration,
// or warns that it cannot.
func checkConfiguration(ctx context.Context, d Deps, plan *Plan) (err error) {
	if plan.Extender != nil || plan.checked {
		return nil
	}
	dir, remove, err := safeio.MakeTemp("check")
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
		err = checkWithProgram(ctx, d, plan, binary, dir)
	}
	if errors.Is(err, configcheck.ErrNoBinary) {
		return d.withoutProgram(plan, binary, err)
	}
	return err
}

// withoutProgram compares the image's label, and warns about what was not checked.
func (d Deps) withoutProgram(plan *Plan, binary configcheck.Binary, reason error) error {
	warning, established, err := plan.releaseCheck().CompareOutput("", reason, binary.Label)
	switch {
	case err != nil:
		return err
	case !established:
		d.Warnf("the release of the program in image %s was not established", plan.Scheduler.Image)
	case warning != "":
		d.Warnf("%s", warning)
	}
	d.Warnf("the configuration was checked only with built-in rules for %s: %v", plan.Release, reason)
	return nil
}
