package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Reference is a page with the help for every command of the program in cmd/PROGRAM. Flags that
// several commands share are described once.
func Reference(app *cli.App, program string) []byte {
	var b bytes.Buffer
	title := "# Command reference"
	if program != "pmk-sched" {
		title += ": " + program
	}
	fmt.Fprintf(&b, "%s\n\nGenerated from the commands; `go test ./cmd/%s -run Reference -update` writes it.\n\n"+
		"Flags that several commands share are described once, before the commands. `COMMAND --help` prints\n"+
		"all flags of a command.\n", title, program)
	section := func(name, help string) { fmt.Fprintf(&b, "\n## %s\n\n```\n%s```\n", name, help) }
	section(app.Name, AppHelp(app))
	groups := flagGroups(app)
	for _, g := range groups {
		section("Flags "+g.of, strings.Join(g.flags, ""))
	}
	EachCommand(app, func(name string, cmd *cli.Command) {
		var help bytes.Buffer
		writeSynopsis(&help, name, cmd)
		if flags := ownFlags(groups, cmd); flags != "" {
			help.WriteString("\nFLAGS:\n" + flags)
		}
		writeExamples(&help, cmd)
		section(name, help.String())
	})
	return b.Bytes()
}

// flagGroup is a group of flags that commands share, see [Shared].
type flagGroup struct {
	of string
	// flags are the help texts of the flags in the first command of the group.
	flags []string
}

func flagGroups(app *cli.App) []*flagGroup {
	var groups []*flagGroup
	EachCommand(app, func(_ string, cmd *cli.Command) {
		known := len(groups)
		for _, f := range visible(cmd.Flags) {
			of := f.(cli.CategorizableFlag).GetCategory()
			at := slices.IndexFunc(groups, func(g *flagGroup) bool { return g.of == of })
			if at < 0 && of != "" {
				at = len(groups)
				groups = append(groups, &flagGroup{of: of})
			}
			if at >= known {
				groups[at].flags = append(groups[at].flags, flagHelp(f))
			}
		}
	})
	return groups
}

// ownFlags returns the help of a command's flags, with one line for each group.
func ownFlags(groups []*flagGroup, cmd *cli.Command) string {
	var shared []string
	own := ""
	for _, f := range visible(cmd.Flags) {
		text, of := flagHelp(f), f.(cli.CategorizableFlag).GetCategory()
		in := slices.ContainsFunc(groups, func(g *flagGroup) bool { return g.of == of && slices.Contains(g.flags, text) })
		if !in {
			own += text
		} else if line := "  flags " + of + "\n"; !slices.Contains(shared, line) {
			shared = append(shared, line)
		}
	}
	return strings.Join(shared, "") + own
}

func flagHelp(f cli.DocGenerationFlag) string {
	var b strings.Builder
	writeFlag(&b, f)
	return b.String()
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
	EachCommand(app, func(name string, cmd *cli.Command) { page(name, HelpOf(app, name, cmd)) })
	return failed
}
