package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
)

// fleetFlags select clusters.
func fleetFlags(more ...cli.Flag) []cli.Flag {
	return append(command.Shared("of a fleet",
		&cli.StringFlag{Name: "from", Value: fleet.FromContexts,
			Usage: "`SOURCE` of kubeconfigs: contexts, argocd, cluster-api, cluster-profiles, or a directory"},
		&cli.StringFlag{Name: "from-namespace", Usage: "`NAMESPACE` of the Secrets or ClusterProfiles",
			DefaultText: "argocd for argocd, otherwise all"},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "label `SELECTOR` of clusters", DefaultText: "all"},
		&cli.BoolFlag{Name: "allow-exec", Usage: "run the credential plugins that Secrets name, as this user"},
		&cli.StringFlag{Name: "access-providers", Usage: "`FILE` with the credential plugins for cluster-profiles, JSON"},
	), more...)
}

// fleetReadFlags select clusters and bound how they are read.
func fleetReadFlags(more ...cli.Flag) []cli.Flag {
	const parallel = "parallel"
	return append(fleetFlags(command.Shared("of reading a fleet",
		&cli.IntFlag{Name: parallel, Value: 10, Usage: "`NUMBER` of clusters to read at the same time",
			Action: func(_ *cli.Context, n int) error {
				if n < 1 {
					return problem.Invalidf("", "invalid --%s %d: must be at least 1", parallel, n)
				}
				return nil
			}},
		timeoutFlag(10*time.Second, "each cluster"),
		command.OutputFlag(""))...), more...)
}

func fleetFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "`FILE`: pmk-sched.yaml, or - for standard input"}
}

// readFleetFile reads the file from fleetFileFlag.
func readFleetFile(c *cli.Context, u *ui) (*spec.Spec, error) {
	if c.String("file") == "" {
		return nil, problem.Invalidf("describe the scheduler in a file: pmk-sched.yaml", "--file is required")
	}
	return named(spec.Read(nameFlags(c, u)))
}

// readFleet returns the clusters that the flags select.
func readFleet(c *cli.Context, u *ui) ([]fleet.Cluster, error) {
	return fleet.List(c.Context, u.Session, fleet.Source{
		From: c.String("from"), Namespace: c.String("from-namespace"), Selector: c.String("selector"),
		AllowExec: c.Bool("allow-exec"), AccessProviders: c.String("access-providers"),
	})
}

func fleetRead(c *cli.Context) fleet.ReadOptions {
	return fleet.ReadOptions{Parallel: c.Int("parallel"), Timeout: c.Duration("timeout")}
}
