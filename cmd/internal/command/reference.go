package command

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

// manCommand writes manual pages.
func manCommand(app *cli.App) *cli.Command {
	return &cli.Command{
		Name: "man", Hidden: true, ArgsUsage: "DIR", Usage: "write manual pages",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return problem.Invalidf("", "DIR is required")
			}
			return writeManPages(app, c.Args().First())
		},
	}
}

// EachCommand calls do with every command that is not hidden, parents first, and its full name.
func EachCommand(app *cli.App, do func(name string, cmd *cli.Command)) {
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

// Reference is a page with the help for every command of the program in cmd/PROGRAM.
func Reference(app *cli.App, program string) []byte {
	var b bytes.Buffer
	title := "# Command reference"
	if program != "pmk-sched" {
		title += ": " + program
	}
	fmt.Fprintf(&b, "%s\n\nGenerated from the commands; `go test ./cmd/%s -run Reference -update` writes it.\n", title, program)
	section := func(name, help string) { fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", name, help) }
	section(app.Name, AppHelp(app))
	EachCommand(app, func(name string, cmd *cli.Command) { section(name, CommandHelp(name, cmd)) })
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
	page(app.Name, AppHelp(app))
	EachCommand(app, func(name string, cmd *cli.Command) { page(name, CommandHelp(name, cmd)) })
	return failed
}
