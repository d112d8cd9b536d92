package main

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
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
			&cli.BoolFlag{Name: "rbac", Usage: "print the permissions that a snapshot needs, in the namespace of --namespace"},
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
			return u.Data(c.String("output"), header, snapshotTable(header))
		},
	}
}

// roleFormat is the format from --output, by default YAML.
func roleFormat(c *cli.Context) string {
	if c.IsSet("output") {
		return c.String("output")
	}
	return "yaml"
}

// printRole prints a ServiceAccount that may use verbs for the objects that schedulers read.
func (u *ui) printRole(format, name string, resources []string, verbs ...string) error {
	kinds, err := capture.Kinds(resources)
	if err != nil {
		return err
	}
	var documents [][]byte
	for _, object := range snapshot.Role(name, cmp.Or(u.Namespace, spec.DefaultNamespace), kinds, verbs...) {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("print permissions: %w", err)
		}
		documents = append(documents, text)
	}
	return u.objects(format, "", bytes.Join(documents, []byte("---\n")))
}

func snapshotTable(h *snapshot.Header) string {
	var p printer
	p.Row("RESOURCE", "OBJECTS", "BYTES")
	for _, r := range h.Resources {
		p.Row(r.GroupResource(), r.Objects, r.Bytes)
	}
	p.Line("\npods: %d running, %d pending, %d finished", h.Pods.Running, h.Pods.Pending, h.Pods.Finished)
	return p.String()
}
