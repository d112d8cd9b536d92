package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/shadow"
	"github.com/pmk-sched/pmk-sched/internal/rollout"
	"github.com/pmk-sched/pmk-sched/internal/rollout/stage"
)

func rolloutCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "rollout", Usage: "deploy a scheduler and give it the pods of its route step by step",
		Description: "With the gate agreement it first runs the scheduler as a shadow, which changes nothing. Then it deploys " +
			"the scheduler for a share of the new pods that spec.route selects, and judges each step by the pods that were " +
			"routed in it. A violated gate, Ctrl-C or an error sets the share to 0. spec.rollout sets the times. Run again " +
			"after a crash, it continues. The exit status is 3 if a gate is violated or a step was not judged.",
		UsageText: command.Examples("pmk-sched rollout -f pmk-sched.yaml",
			"pmk-sched rollout --name new -f new.yaml --steps 1%,50%,100% --gate 'agreement>=99'",
			"pmk-sched rollout -f pmk-sched.yaml --dry-run"),
		Flags: []cli.Flag{
			nameFlag("scheduler"), fileFlag(),
			&cli.StringFlag{Name: "steps", Usage: "`SHARES` of the route in percent", DefaultText: "spec.rollout.steps"},
			&cli.StringSliceFlag{Name: "gate", DefaultText: "spec.rollout.gates",
				Usage: "`GATE` of the steps: agreement>=PERCENT, unschedulable<=NUMBER or wait-p99<=DURATION"},
			&cli.BoolFlag{Name: "dry-run", Usage: "run all checks and print the first step without changing anything"},
			timeoutFlag(defaultTimeout, "the scheduler"), stableForFlag(10 * time.Second),
			command.OutputFlag(""),
		},
		Action: func(c *cli.Context) error {
			sp, err := readRollout(c, u)
			if err != nil {
				return err
			}
			if c.Bool("dry-run") {
				return checkRollout(c, u, sp)
			}
			result, err := rollout.Run(c.Context, u.Session, sp, rollout.Options{RunOptions: runOptions(c),
				Shadow: shadowOf(u, sp), Report: func(text string) { u.Say("%s", text) }})
			if result == nil {
				return err
			}
			if err == nil {
				err = verdictOf(result)
			}
			return errors.Join(u.Data(c.String("output"), result, rolloutResult(result)), err)
		},
	}
}

// readRollout reads the file and the flags.
func readRollout(c *cli.Context, u *ui) (*spec.Spec, error) {
	if c.String("file") == "" {
		return nil, problem.Invalidf("", "--file is required")
	}
	f := nameFlags(c, u)
	f.Gates = c.StringSlice("gate")
	if steps := c.String("steps"); steps != "" {
		f.Steps = strings.Split(steps, ",")
	}
	return named(spec.Read(f))
}

func checkRollout(c *cli.Context, u *ui, sp *spec.Spec) error {
	result, err := rollout.Check(c.Context, u.Session, sp)
	if err != nil {
		return err
	}
	u.Say("dry run: nothing was changed")
	return u.Data(c.String("output"), result, rolloutResult(result))
}

// shadowOf returns [rollout.Options.Shadow].
func shadowOf(u *ui, sp *spec.Spec) func(context.Context, time.Duration) (stage.Shadow, error) {
	return func(ctx context.Context, duration time.Duration) (stage.Shadow, error) {
		request := shadow.Request{Observed: corev1.DefaultSchedulerName, For: duration}
		var err error
		if request.Scheduler, err = sp.Simulation(nil, nil); err != nil {
			return stage.Shadow{}, err
		}
		report, err := shadow.Run(ctx, u.Session, request)
		if err != nil {
			return stage.Shadow{}, err
		}
		// A tie equals the cluster's decision: the shadow has selected the same node too.
		seen := stage.Shadow{Same: report.Same + len(report.Noise)}
		seen.All = seen.Same + len(report.Differences) + len(report.Undecided)
		for _, d := range append(report.Differences, report.Undecided...) {
			seen.Different = append(seen.Different, d.Namespace+"/"+d.Name)
		}
		return seen, nil
	}
}

func rolloutResult(r *rollout.Result) string {
	text := fmt.Sprintf("scheduler %s: a share of %d %%", r.Name, r.Share)
	if r.Revision > 0 {
		text += fmt.Sprintf(" (revision %d)", r.Revision)
	}
	return text + prefixed(": ", r.Reason) + "\n"
}

// verdictOf returns an error for a rollout that did not pass.
func verdictOf(r *rollout.Result) error {
	switch r.Verdict {
	case v1alpha1.RolloutPassed:
		return nil
	case v1alpha1.RolloutNotJudged:
		return command.CheckFailed("scheduler %s is not judged: %s; the share of its route is %d %%", r.Name, r.Reason, r.Share)
	default:
		return command.CheckFailed("scheduler %s: %s; the share of its route is %d %%", r.Name, r.Reason, r.Share)
	}
}
