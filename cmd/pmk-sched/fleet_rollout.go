package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
)

// fleetRolloutFlags select clusters, order them, and bound failures.
func fleetRolloutFlags(more ...cli.Flag) []cli.Flag {
	const failures = "max-failures"
	return append(fleetFlags(command.Shared("of a rollout",
		&cli.StringFlag{Name: "wave", Usage: "order clusters by the value of `LABEL`", DefaultText: "by name"},
		&cli.IntFlag{Name: failures, Usage: "stop when more than `NUMBER` clusters have failed",
			Action: func(_ *cli.Context, n int) error {
				if n < 0 {
					return problem.Invalidf("", "invalid --%s %d: must be at least 0", failures, n)
				}
				return nil
			}},
		timeoutFlag(defaultTimeout, "the scheduler of each cluster"), stableForFlag(10*time.Second),
		command.OutputFlag(""))...), more...)
}

const fleetRolloutText = "One cluster after the other. A cluster on which it fails gets its former scheduler back. Nothing is " +
	"stored: run again, the command continues, because clusters that are up to date are only verified. The exit " +
	"status is 1 if a cluster fails."

func fleetDeployCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "deploy", Usage: "deploy a scheduler on many clusters, one after the other",
		Description: "Runs `pmk-sched deploy` and verifies that the scheduler binds a pod. {release} in spec.image is replaced " +
			"by the release of the cluster. " + fleetRolloutText,
		UsageText: command.Examples("pmk-sched fleet deploy -f pmk-sched.yaml --from cluster-api --wave wave",
			"pmk-sched fleet deploy -f pmk-sched.yaml --selector region=eu --max-failures 1"),
		Flags: fleetRolloutFlags(fleetFileFlag()),
		Action: func(c *cli.Context) error {
			sp, err := readFleetFile(c, u)
			if err != nil {
				return err
			}
			return fleetRollout(c, u, func(list []fleet.Cluster, o fleet.RolloutOptions) ([]fleet.Turn, error) {
				return fleet.Deploy(c.Context, u.Session, list, sp, o)
			})
		},
	}
}

func fleetUpgradeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "upgrade a scheduler on many clusters, one after the other",
		Description: "Runs `pmk-sched upgrade` on clusters whose scheduler has another release than the API server, and " +
			"verifies it on all. It builds and pushes only the image in spec.image of -f, and asks no question: where neither " +
			"-f nor --image names the image, a cluster that needs another one fails. " + fleetRolloutText,
		UsageText: command.Examples("pmk-sched fleet upgrade -f pmk-sched.yaml --wave wave --max-failures 2",
			"pmk-sched fleet upgrade --name my-scheduler --image registry.example.com/kube-scheduler:{release}"),
		Flags: fleetRolloutFlags(
			nameFlag("scheduler"), fileFlag(),
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of an image that was built elsewhere", DefaultText: "build the image in spec.image of -f"},
			requireSignatureFlag(),
			lossyFlag(),
		),
		Action: func(c *cli.Context) error {
			up, err := readUpgrade(c, u)
			if err == nil {
				err = up.Spec.RequireName()
			}
			if err != nil {
				return err
			}
			return fleetRollout(c, u, func(list []fleet.Cluster, o fleet.RolloutOptions) ([]fleet.Turn, error) {
				return fleet.Upgrade(c.Context, u.Session, list, up, o)
			})
		},
	}
}

// fleetRollout runs a rollout and prints the result for each cluster, also if it was stopped.
func fleetRollout(c *cli.Context, u *ui,
	run func([]fleet.Cluster, fleet.RolloutOptions) ([]fleet.Turn, error)) error {
	clusters, err := readFleet(c, u)
	if err != nil {
		return err
	}
	turns, err := run(clusters, fleet.RolloutOptions{
		Wave: c.String("wave"), MaxFailures: c.Int("max-failures"),
		Deploy: deploy.RunOptions{Timeout: c.Duration("timeout"), StableFor: c.Duration("stable-for")},
		OnTurn: func(t fleet.Turn) {
			u.Say("cluster %s: %s%s", t.Cluster, t.State, prefixed(": ", t.Error))
			for _, hint := range t.Hints {
				u.Say("hint: %s", hint)
			}
		},
	})
	if turns == nil {
		return err
	}
	return errors.Join(u.Data(c.String("output"), turns, rolloutTable(turns)), err)
}

func rolloutTable(turns []fleet.Turn) string {
	var p printer
	p.Row("CLUSTER", "WAVE", "STATE", "RELEASE", "REVISION", "IMAGE", "ERROR")
	for _, t := range turns {
		revision := any("-")
		if t.Revision > 0 {
			revision = t.Revision
		}
		p.Row(t.Cluster, orDash(t.Wave), t.State, orDash(t.Release), revision, orDash(shortReference(t.Image)),
			orDash(oneLine(t.Error)))
	}
	return p.String()
}
