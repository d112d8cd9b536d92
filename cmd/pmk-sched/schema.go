package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func schemaCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of pmk-sched.yaml, or of a test",
		Description: "Editors complete and check the file with it. The YAML language server reads it from the first line " +
			"of the file: # yaml-language-server: $schema=pmk-sched.schema.json",
		UsageText: command.Examples("pmk-sched schema", "pmk-sched schema --to-file pmk-sched.schema.json",
			"pmk-sched schema --kind SchedulingTest --to-file test.schema.json"),
		Flags: []cli.Flag{
			toFileFlag(),
			&cli.StringFlag{Name: "kind", Value: v1alpha1.Kind,
				Usage: "`KIND`: " + v1alpha1.Kind + ", or " + v1alpha1.TestKind + " of `pmk-sched test`"},
		},
		Action: func(c *cli.Context) error {
			switch kind := c.String("kind"); kind {
			case v1alpha1.Kind:
				return u.write(c.String("to-file"), v1alpha1.Schema())
			case v1alpha1.TestKind:
				return u.write(c.String("to-file"), v1alpha1.TestSchema())
			default:
				return problem.Invalidf("", "invalid --kind %q: must be %s or %s", kind, v1alpha1.Kind, v1alpha1.TestKind)
			}
		},
	}
}
