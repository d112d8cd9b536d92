package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// hiddenCommands are for scripts, not for users.
func hiddenCommands(u *ui, app *cli.App) []*cli.Command {
	return []*cli.Command{
		completeCommand(u, app),
		onNodeCommand(u),
		simulateCellCommand(u),
		{
			Name: "man", Hidden: true, ArgsUsage: "DIR", Usage: "write manual pages",
			Action: func(c *cli.Context) error {
				if !c.Args().Present() {
					return problem.Invalidf("", "DIR is required")
				}
				return writeManPages(app, c.Args().First())
			},
		},
	}
}

// eachCommand calls do with every command that is not hidden, parents first, and its full name.
func eachCommand(app *cli.App, do func(name string, cmd *cli.Command)) {
	var walk func(prefix string, commands []*cli.Command)
	walk = func(prefix string, commands []*cli.Command) {
		for _, cmd := range commands {
			if !cmd.Hidden && cmd.Name != "help" {
				do(prefix+" "+cmd.Name, cmd)
				walk(prefix+" "+cmd.Name, cmd.Subcommands)
			}
		}
	}
	walk(app.Name, app.Commands)
}

// reference is docs/reference.md: the help for every command.
func reference(app *cli.App) []byte {
	var b bytes.Buffer
	b.WriteString(
		"# Command reference\n\nGenerated from the commands; `go test ./cmd/pmk-sched -run Reference -update` writes it.\n")
	section := func(name, help string) { fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", name, help) }
	section(app.Name, appHelp(app))
	eachCommand(app, func(name string, cmd *cli.Command) { section(name, commandHelp(name, cmd)) })
	return b.Bytes()
}

func writeManPages(app *cli.App, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	var failed error
	page := func(name, help string) {
		file := strings.ReplaceAll(name, " ", "-")
		text := md2man.Render(fmt.Appendf(nil, "%% %s 1\n\n# NAME\n\n%s\n\n# SYNOPSIS\n\n```\n%s```\n", file, file, help))
		if err := os.WriteFile(filepath.Join(dir, file+".1"), text, 0o644); err != nil && failed == nil { //nolint:gosec // a manual page
			failed = fmt.Errorf("write manual pages: %w", err)
		}
	}
	page(app.Name, appHelp(app))
	eachCommand(app, func(name string, cmd *cli.Command) { page(name, commandHelp(name, cmd)) })
	return failed
}
