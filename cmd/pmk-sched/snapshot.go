package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/session"
)

func snapshotCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "snapshot",
		Usage: "write the objects that a scheduler reads to a file",
		Description: "Nodes, pods, volumes, claims, devices and the other objects that schedulers read, at one resource version,\n" +
			"for simulations elsewhere. Environment variables, commands, other annotations, Secrets and ConfigMaps are left out.\n" +
			"Changes nothing on the cluster.",
		UsageText: examples(
			"pmk-sched snapshot --to-file cluster.tar.gz",
			"pmk-sched snapshot --rbac | kubectl apply -f -",
			"kubectl get nodes,pods -A -o json | pmk-sched snapshot --from - --anonymize",
		),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to-file", Value: "cluster.tar.gz", Usage: "write to `FILE`"},
			&cli.StringSliceFlag{Name: "from", Usage: "read `PATH` instead of the cluster: a snapshot, output of kubectl get -o yaml or json, manifests or a trace; -: standard input"},
			&cli.BoolFlag{Name: "anonymize", Usage: "replace names, labels, images and UIDs"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`PLURAL.GROUP` that a plugin reads, with all its fields"},
			&cli.BoolFlag{Name: "rbac", Usage: "print the permissions that a snapshot needs, in the namespace of --namespace"},
			outputFlag("to-file"),
		},
		Action: func(c *cli.Context) error {
			request := session.SnapshotRequest{
				From: c.StringSlice("from"), Stdin: u.in, Resources: c.StringSlice("resource"), Anonymize: c.Bool("anonymize"), Version: ownVersion(),
			}
			if c.Bool("rbac") {
				return printRole(c, u, snapshot.RoleName, request.Resources, "list")
			}
			header, err := u.foresight.Snapshot(c.Context, request, c.String("to-file"))
			if err != nil {
				return err
			}
			return u.data(c.String("output"), header, snapshotTable(header))
		},
	}
}

// printRole prints a ServiceAccount that may use verbs for the objects that schedulers read, as
// YAML unless another format is given.
func printRole(c *cli.Context, u *ui, name string, resources []string, verbs ...string) error {
	kinds, err := session.SnapshotKinds(resources)
	if err != nil {
		return err
	}
	var documents [][]byte
	for _, object := range snapshot.Role(name, cmp.Or(u.namespace, spec.DefaultNamespace), kinds, verbs...) {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("print permissions: %w", err)
		}
		documents = append(documents, text)
	}
	format := "yaml"
	if c.IsSet("output") {
		format = c.String("output")
	}
	return u.objects(format, "", bytes.Join(documents, []byte("---\n")))
}

// snapshotTable prints the number of objects of each kind.
func snapshotTable(h *snapshot.Header) func(io.Writer) error {
	return func(w io.Writer) error {
		var text bytes.Buffer
		fmt.Fprintln(&text, "RESOURCE\tOBJECTS\tBYTES")
		for _, r := range h.Resources {
			kind := snapshot.Kind{Group: r.Group, Resource: r.Resource}
			fmt.Fprintf(&text, "%s\t%d\t%d\n", kind.GroupResource(), r.Objects, r.Bytes)
		}
		fmt.Fprintf(&text, "\npods: %d running, %d pending, %d finished\n", h.Pods.Running, h.Pods.Pending, h.Pods.Finished)
		_, err := text.WriteTo(w)
		return err
	}
}
