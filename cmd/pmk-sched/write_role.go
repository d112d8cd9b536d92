package main

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// roleFormat is the format from --output, by default YAML.
func roleFormat(c *cli.Context) string {
	if c.IsSet("output") {
		return c.String("output")
	}
	return "yaml"
}

// rbacFlag returns the flag with which a command prints its role.
func rbacFlag(who string) cli.Flag {
	return &cli.BoolFlag{Name: "rbac", Usage: "print the permissions that " + who +
		" needs, in the namespace of --namespace"}
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
