package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/scaffold"
)

func pluginCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "plugin", Usage: "list the bundled scheduler plugins, create new plugins, and test them",
		Subcommands: []*cli.Command{pluginListCommand(u), pluginNewCommand(u), pluginTestCommand(u)},
	}
}

func pluginListCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the bundled plugins: extension points, arguments, permissions",
		UsageText: command.Examples("pmk-sched plugin list", "pmk-sched plugin list -o json"),
		Flags:     []cli.Flag{command.OutputFlag("")},
		Action: func(c *cli.Context) error {
			plugins, err := pack.BundledPlugins(c.Context, u.Session)
			if err != nil {
				return err
			}
			return u.Data(c.String("output"), plugins, pluginTable(plugins))
		},
	}
}

func pluginTable(plugins []pack.BundledPlugin) string {
	var p printer
	for _, plugin := range plugins {
		p.Row(plugin.Name, "--with "+plugin.With)
		p.Row("", plugin.Synopsis)
		p.Row("", "points: "+strings.Join(plugin.Points, ", "))
		switch {
		case plugin.ByArguments:
			p.Row("", "permissions: depend on its arguments")
		case len(plugin.Permissions) == 0:
			p.Row("", "permissions: none")
		}
		for _, rule := range plugin.Permissions {
			if !plugin.ByArguments {
				p.Line("\tpermissions: %s %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.Resources, ", "))
			}
		}
		for _, a := range plugin.Arguments {
			p.Row("", strings.TrimRight(fmt.Sprintf("args.%s (%s): %s", a.Name, a.Type, a.Doc), ": "))
		}
	}
	return p.String()
}

func pluginNewCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "new", ArgsUsage: "NAME", Usage: "create a plugin: a Go module with code, tests and a CI workflow",
		Description: "A portable plugin is written once and compiled for every release. A native plugin is written against " +
			"the framework of one release. Flags go before the name.",
		UsageText: command.Examples("pmk-sched plugin new my-plugin", "pmk-sched plugin new --extender --dir my-extender my-policy"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "native", Usage: "a plugin for the framework of one release"},
			&cli.BoolFlag{Name: "extender", Usage: "a portable plugin with a program that serves it as a scheduler extender"},
			&cli.StringFlag{Name: "dir", Usage: "`DIR` to create", DefaultText: "./NAME"},
			&cli.StringFlag{Name: "module", Usage: "`PATH` of the Go module", DefaultText: "example.com/NAME"},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of a native plugin and of pmk-sched.yaml",
				DefaultText: "the newest; auto for a portable plugin"},
		},
		Action: func(c *cli.Context) error {
			if err := exclude(c, "", "native", "extender"); err != nil {
				return err
			}
			r := scaffold.Request{
				Kind: scaffold.Portable, Name: c.Args().First(), Dir: c.String("dir"), Module: c.String("module"),
				Branch: c.String("branch"),
			}
			switch {
			case c.Bool("native"):
				r.Kind = scaffold.Native
			case c.Bool("extender"):
				r.Kind = scaffold.Extender
			}
			made, err := scaffold.Plugin(c.Context, u.Session, r)
			if err != nil {
				return err
			}
			next := "pmk-sched plugin test -f pmk-sched.yaml --branch " + made.Release.String() + " scenario.yaml"
			if r.Kind == scaffold.Extender {
				next = "pmk-sched build extender --with ./" + made.Package
			}
			u.Say("%s is created: `cd %s && go test ./...`, then `%s`", made.Dir, made.Dir, next)
			return nil
		},
	}
}
