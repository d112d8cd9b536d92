package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/versions"
)

func snapshotCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "snapshot", Usage: "write the objects that a scheduler reads to a file",
		Description: "Nodes, pods, volumes, claims, devices and the other objects that schedulers read, at one resource " +
			"version, for simulations elsewhere. Environment variables, commands, other annotations, Secrets and ConfigMaps " +
			"are left out. Changes nothing on the cluster.",
		UsageText: command.Examples("pmk-sched snapshot --to-file cluster.tar.gz",
			"pmk-sched snapshot --rbac | kubectl apply -f -",
			"kubectl get nodes,pods -A -o json | pmk-sched snapshot --from - --anonymize"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to-file", Value: "cluster.tar.gz", Usage: "write to `FILE`"},
			&cli.StringSliceFlag{Name: "from",
				Usage: "read `PATH` instead of the cluster: a snapshot, output of kubectl get -o yaml or json, manifests or a " +
					"trace; -: standard input"},
			&cli.BoolFlag{Name: "anonymize", Usage: "replace names, labels, images and UIDs"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`PLURAL.GROUP` that a plugin reads, with all its fields"},
			rbacFlag("a snapshot"),
			command.OutputFlag("to-file"),
		},
		Action: func(c *cli.Context) error {
			request := capture.Request{
				From: c.StringSlice("from"), Stdin: u.In, Resources: c.StringSlice("resource"), Anonymize: c.Bool("anonymize"),
				Version: ownVersion(),
			}
			if c.Bool("rbac") {
				return u.printRole(roleFormat(c), snapshot.RoleName, request.Resources, "list")
			}
			header, err := capture.Write(c.Context, u.Session, request, c.String("to-file"))
			if err != nil {
				return err
			}
			next := "pmk-sched simulate pending --snapshot " + c.String("to-file")
			if header.Release == "" {
				next += " --branch " + versions.Releases()[0].String()
			}
			return u.Conclude(c.String("output"), header, snapshotTable(header), "", "`"+next+"`")
		},
	}
}
