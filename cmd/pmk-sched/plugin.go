package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	rbacv1 "k8s.io/api/rbac/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/versions"
)

func pluginCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:        "plugin",
		Usage:       "plugins for the scheduler: those that come with this program, and new ones",
		Subcommands: []*cli.Command{pluginListCommand(u), pluginNewCommand(u)},
	}
}

// shippedPlugin is what `plugin list` prints of one plugin.
type shippedPlugin struct {
	// With is what to give to --with.
	With string `json:"with"`
	plugins.Info
	plugins.Description
	// Permissions are what it needs with no arguments given. If they depend on
	// arguments that have to be given, the field is empty and ByArguments set.
	Permissions []rbacv1.PolicyRule `json:"permissions"`
	ByArguments bool                `json:"permissionsByArguments,omitempty"`
}

func pluginListCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "print the plugins that come with this program, with their extension points, arguments and permissions",
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			cache, err := cacheDir(c)
			if err != nil {
				return err
			}
			plugins, err := shippedPlugins(c, cache)
			if err != nil {
				return err
			}
			return u.data(c.String("o"), plugins, func(w io.Writer) error {
				for _, p := range plugins {
					if err := p.write(w); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func shippedPlugins(c *cli.Context, cache string) ([]shippedPlugin, error) {
	names, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		return nil, err
	}
	var given []plugins.Plugin
	for _, name := range names {
		given = append(given, plugins.Plugin{Builtin: name})
	}
	infos, err := build.ReadPlugins(c.Context, build.PluginOptions{
		Release: versions.Releases()[0], Plugins: given, Sources: pmksched.Sources, CacheDir: cache, Env: os.Environ(),
	})
	if err != nil {
		return nil, err
	}
	var all []shippedPlugin
	for i, name := range names {
		p := shippedPlugin{With: given[i].String(), Info: infos[i], Permissions: []rbacv1.PolicyRule{}}
		if p.Description, err = plugins.Describe(pmksched.Sources, name); err != nil {
			return nil, err
		}
		if declared := shippedRules[name]; declared != nil {
			rules, err := declared(scheduler.Arguments{})
			p.ByArguments = err != nil
			p.Permissions = append(p.Permissions, rules...)
		}
		all = append(all, p)
	}
	return all, nil
}

// write writes a plugin for people.
func (p shippedPlugin) write(w io.Writer) error {
	lines := []string{
		fmt.Sprintf("%s\t--with %s", p.Name, p.With),
		"\t" + p.Synopsis,
		"\tpoints: " + strings.Join(p.Points, ", "),
	}
	switch {
	case p.ByArguments:
		lines = append(lines, "\tpermissions: as its arguments say")
	case len(p.Permissions) == 0:
		lines = append(lines, "\tpermissions: none of its own")
	default:
		for _, rule := range p.Permissions {
			lines = append(lines, "\tpermissions: "+strings.Join(rule.Verbs, ", ")+" "+strings.Join(rule.Resources, ", "))
		}
	}
	for _, a := range p.Arguments {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("\targs.%s (%s): %s", a.Name, a.Type, a.Doc), ": "))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
