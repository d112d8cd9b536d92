package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func profileCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "profile", Usage: "list presets, and convert or validate scheduler configurations",
		Subcommands: []*cli.Command{profileListCommand(u), profileShowCommand(u), profileConvertCommand(u), profileValidateCommand(u)},
	}
}

func profileListCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the presets",
		UsageText: examples("pmk-sched profile list", "pmk-sched profile list -o json"),
		Flags:     []cli.Flag{outputFlag("")},
		Action: func(c *cli.Context) error {
			presets := profiles.Presets()
			var p printer
			for _, preset := range presets {
				p.row(preset.Name, preset.Description)
			}
			return u.data(c.String("output"), presets, p.String())
		},
	}
}

func profileShowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "print the configuration of a preset for a release",
		UsageText: examples("pmk-sched profile show binpack", "pmk-sched profile show --branch v1.24.3 -o json spread"),
		ArgsUsage: "PRESET",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: "the newest"},
			&cli.StringFlag{Name: "name", Value: "my-scheduler", Usage: "`NAME` of the scheduler"},
			outputFlag("", "yaml", "json"),
		},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return problem.Invalidf("see `pmk-sched profile list`", "PRESET is required")
			}
			release := versions.Releases()[0]
			if branch := c.String("branch"); branch != "" {
				var err error
				if release, err = pack.ResolveBranch(c.Context, u.session, branch); err != nil {
					return err
				}
			}
			rendered, err := deploy.RenderPreset(c.Args().First(), c.String("name"), release)
			if err != nil {
				return err
			}
			return u.document(c.String("output"), "", rendered)
		},
	}
}
