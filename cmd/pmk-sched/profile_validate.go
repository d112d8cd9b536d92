package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func profileValidateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "validate", ArgsUsage: "FILE", Usage: "check whether a scheduler configuration is valid for a release",
		Description: "Uses the kube-scheduler of the release, if one with the plugins of the file was built on this " +
			"machine, or else the built-in rules for the release; the output names the program or the rules. FILE - is " +
			"standard input.\n\n" +
			"Exit status: 0 valid; 2 the file cannot be read; 3 not valid for the release.",
		UsageText: examples("pmk-sched profile validate --branch v1.24.3 config.yaml",
			"pmk-sched profile validate --branch v1.25.4 -o json config.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler (required)"},
			&cli.StringSliceFlag{Name: "plugin", Usage: "`NAME` of a plugin that is compiled in"},
			outputFlag(""),
		},
		Action: func(c *cli.Context) error {
			if c.String("branch") == "" {
				return problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required")
			}
			release, err := pack.ResolveBranch(c.Context, u.session, c.String("branch"))
			if err != nil {
				return err
			}
			text, name, err := u.readDocument(c.Args().First())
			if err != nil {
				return err
			}
			v, err := pack.Validate(c.Context, u.session, profiles.ValidateRequest{
				Release: release, Source: text, SourceName: name, Plugins: c.StringSlice("plugin"),
			})
			if err != nil {
				return err
			}
			if err := u.data(c.String("output"), v, validationTable(v)); err != nil || v.Valid {
				return err
			}
			return problem.WithHint(&checkFailed{text: strings.Join(v.Reasons, "\n")}, v.Hint)
		},
	}
}

func validationTable(v *pack.Validation) string {
	verdict := "valid"
	if !v.Valid {
		verdict = "not valid"
	}
	return fmt.Sprintf("%s: %s for %s (%s), by %s\n", v.File, verdict, v.Release, v.APIVersion, v.Judge)
}
