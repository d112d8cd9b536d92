package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func schemaCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of pmk-sched.yaml",
		Description: "Editors complete and check the file with it. The YAML language server reads it from the first line " +
			"of the file: # yaml-language-server: $schema=pmk-sched.schema.json",
		UsageText: examples("pmk-sched schema", "pmk-sched schema --to-file pmk-sched.schema.json"),
		Flags:     []cli.Flag{toFileFlag()},
		Action:    func(c *cli.Context) error { return u.write(c.String("to-file"), v1alpha1.Schema()) },
	}
}
