package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func profileCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "profile",
		Usage:       "scheduler configurations: ready-made ones, and your own carried to another release",
		Subcommands: []*cli.Command{profileListCommand(u), profileShowCommand(u), profileConvertCommand(u), profileValidateCommand(u)},
	}
}

func profileListCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "print the presets",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			presets := profiles.Presets()
			return u.data(c.String("o"), presets, func(w io.Writer) error {
				for _, p := range presets {
					if _, err := fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Description); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func profileShowCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print the configuration of a preset, as a release reads it",
		ArgsUsage: "PRESET",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that reads it", DefaultText: "the newest that is known"},
			&cli.StringFlag{Name: "name", Value: "my-scheduler", Usage: "`NAME` of the scheduler"},
		},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef("see `pmk-sched profile list`", "which preset?")
			}
			release := versions.Releases()[0]
			if branch := c.String("branch"); branch != "" {
				var err error
				if release, err = versions.Parse(branch); err != nil {
					return err
				}
			}
			rendered, err := install.RenderPreset(c.Args().First(), c.String("name"), release)
			if err != nil {
				return err
			}
			_, err = u.out.Write(rendered)
			return err
		},
	}
}
