package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func fleetCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "fleet", Usage: "run commands on many clusters",
		Description: "Takes kubeconfigs from the contexts of a kubeconfig (--context is a pattern), a directory, or the " +
			"Secrets and ClusterProfiles of a management cluster. Keeps them in memory and stores nothing.",
		Subcommands: []*cli.Command{fleetStatusCommand(u), fleetCheckCommand(u), fleetDetectCommand(u),
			fleetDeployCommand(u), fleetUpgradeCommand(u)},
	}
}

func fleetStatusCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the schedulers of many clusters, and detect problems",
		Description: "Reads from each cluster what `pmk-sched status` reads, except the files of a node: release, schedulers, " +
			"images, drift, certificates, findings with the same codes. A cluster that cannot be read is a row. The exit status is 3 " +
			"if there are findings or such clusters. Changes nothing.",
		UsageText: command.Examples("pmk-sched fleet status", "pmk-sched fleet status --context 'prod-*' -o json",
			"pmk-sched fleet status --from cluster-api --context management --selector region=eu"),
		Flags: fleetReadFlags(nameFlag("scheduler or extender")),
		Action: func(c *cli.Context) error {
			clusters, err := readFleet(c, u)
			if err != nil {
				return err
			}
			rows, err := fleet.Status(c.Context, u.Session, clusters, fleetRead(c), c.String("name"), u.Namespace)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), rows, fleetStatusTable(rows, time.Now())); err != nil {
				return err
			}
			return fleetFindings(rows, func(s *replace.Status) []string {
				return texts(s.Findings)
			})
		},
	}
}

func fleetCheckCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check whether many clusters accept the scheduler",
		Description: "Runs the checks of `pmk-sched check` on each cluster. {release} in spec.image is replaced by the release of " +
			"the cluster. The exit status is 3 if a check fails or a cluster cannot be read. Changes nothing.",
		UsageText: command.Examples("pmk-sched fleet check -f pmk-sched.yaml",
			"pmk-sched fleet check -f pmk-sched.yaml --from ~/kubeconfigs -o json"),
		Flags: fleetReadFlags(fleetFileFlag()),
		Action: func(c *cli.Context) error {
			sp, err := readFleetFile(c, u)
			if err != nil {
				return err
			}
			clusters, err := readFleet(c, u)
			if err != nil {
				return err
			}
			rows, err := fleet.Check(c.Context, u.Session, clusters, fleetRead(c), sp)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), rows, fleetCheckTable(rows)); err != nil {
				return err
			}
			return fleetFindings(rows, failedChecks)
		},
	}
}

func fleetDetectCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "detect", Usage: "inspect many clusters",
		Description: "Reads from each cluster what `pmk-sched detect` reads, except the files of a node. The exit status is 3 if a " +
			"cluster cannot be read. Changes nothing.",
		UsageText: command.Examples("pmk-sched fleet detect", "pmk-sched fleet detect --from ~/kubeconfigs -o json"),
		Flags:     fleetReadFlags(nameFlag("scheduler")),
		Action: func(c *cli.Context) error {
			sp, err := spec.Read(nameFlags(c, u))
			if err != nil {
				return err
			}
			clusters, err := readFleet(c, u)
			if err != nil {
				return err
			}
			rows, err := fleet.Detect(c.Context, u.Session, clusters, fleetRead(c), sp.Name, sp.Namespace)
			if err != nil {
				return err
			}
			if err := u.Data(c.String("output"), rows, fleetDetectTable(rows)); err != nil {
				return err
			}
			return fleetFindings(rows, func(*inspect.Info) []string { return nil })
		},
	}
}
