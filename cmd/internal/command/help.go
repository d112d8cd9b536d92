package command

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// HelpWidth is the longest line in a help text.
const HelpWidth = 100

// Examples joins a command's examples. They are kept in UsageText, which the help has no other use
// for.
func Examples(lines ...string) string { return strings.Join(lines, "\n") }

func addHelp(app *cli.App) {
	app.CustomAppHelpTemplate = escapeTemplate(AppHelp(app))
	var add func(prefix string, commands []*cli.Command)
	add = func(prefix string, commands []*cli.Command) {
		for _, cmd := range commands {
			name := prefix + " " + cmd.Name
			cmd.UsageText = inProgram(app.Name, cmd.UsageText)
			cmd.CustomHelpTemplate = escapeTemplate(HelpOf(app, name, cmd))
			add(name, cmd.Subcommands)
		}
	}
	add(app.Name, app.Commands)
}

// inProgram replaces the program's name at the beginning of each line in a text.
func inProgram(name, text string) string {
	return strings.ReplaceAll("\n"+text, "\npmk-sched ", "\n"+name+" ")[1:]
}

func escapeTemplate(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// AppHelp returns the help of a program.
func AppHelp(app *cli.App) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s - %s\n\nUSAGE:\n  %s [global flags] COMMAND [flags]\n\nDESCRIPTION:\n", app.Name, app.Usage,
		app.Name)
	writeIndented(&b, app.Description)
	writeCommands(&b, app.Commands)
	writeFlags(&b, "GLOBAL FLAGS", app.Flags)
	writeHelpFlag(&b)
	fmt.Fprintf(&b, "\nRun `%s COMMAND --help` for the flags and examples of a command.\n", app.Name)
	return b.String()
}

// HelpOf returns the help of the command with a full name.
func HelpOf(app *cli.App, name string, cmd *cli.Command) string {
	var b bytes.Buffer
	writeSynopsis(&b, name, cmd)
	writeFlags(&b, "FLAGS", cmd.Flags)
	writeHelpFlag(&b)
	fmt.Fprintf(&b, "  %-*ssee `%s --help`\n", flagColumn-2, "global flags", app.Name)
	writeExamples(&b, cmd)
	return b.String()
}

// writeSynopsis writes the help without flags and examples.
func writeSynopsis(w io.Writer, name string, cmd *cli.Command) {
	usage := name
	if len(cmd.Subcommands) > 0 {
		usage += " COMMAND"
		if len(visible(cmd.Flags)) > 0 {
			usage = name + " [COMMAND]"
		}
	}
	usage += " [flags]"
	if cmd.ArgsUsage != "" {
		usage += " " + cmd.ArgsUsage
	}
	fmt.Fprintf(w, "%s - %s\n\nUSAGE:\n  %s\n", name, cmd.Usage, usage)
	if cmd.Description != "" {
		fmt.Fprint(w, "\nDESCRIPTION:\n")
		writeIndented(w, cmd.Description)
	}
	writeCommands(w, cmd.Subcommands)
}

func writeExamples(w io.Writer, cmd *cli.Command) {
	if cmd.UsageText != "" {
		fmt.Fprintf(w, "\nEXAMPLES:\n  %s\n", strings.ReplaceAll(cmd.UsageText, "\n", "\n  "))
	}
}

func writeIndented(w io.Writer, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			fmt.Fprintln(w)
		}
		for _, line := range Wrap(paragraph, HelpWidth-2) {
			fmt.Fprintln(w, "  "+line)
		}
	}
}

// writeCommands writes a line for each command, below their categories' names.
func writeCommands(w io.Writer, commands []*cli.Command) {
	if len(commands) == 0 {
		return
	}
	fmt.Fprint(w, "\nCOMMANDS:\n")
	category, indent := "", "  "
	for _, cmd := range commands {
		if cmd.Hidden {
			continue
		}
		if cmd.Category != category {
			if category != "" {
				fmt.Fprintln(w)
			}
			if category = cmd.Category; category != "" {
				fmt.Fprintf(w, "  %s:\n", category)
				indent = "    "
			}
		}
		fmt.Fprintf(w, "%s%-12s %s\n", indent, cmd.Name, cmd.Usage)
	}
}

// flagColumn is the column of the descriptions of flags.
const flagColumn = 34

// writeFlags writes a line for each flag, and more if the description does not fit.
func writeFlags(w io.Writer, title string, flags []cli.Flag) {
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, f := range visible(flags) {
		writeFlag(w, f)
	}
}

func writeFlag(w io.Writer, f cli.DocGenerationFlag) {
	names, description := describeFlag(f)
	for i, line := range Wrap(description, HelpWidth-flagColumn) {
		switch {
		case i == 0 && len(names) < flagColumn-3:
			fmt.Fprintf(w, "  %-*s%s\n", flagColumn-2, names, line)
			continue
		case i == 0:
			fmt.Fprintf(w, "  %s\n", names)
		}
		fmt.Fprintf(w, "%*s%s\n", flagColumn, "", line)
	}
}

func writeHelpFlag(w io.Writer) { fmt.Fprintf(w, "  %-*sshow help\n", flagColumn-2, "--help, -h") }

// visible returns the flags that the help lists.
func visible(flags []cli.Flag) []cli.DocGenerationFlag {
	var list []cli.DocGenerationFlag
	for _, flag := range flags {
		f, ok := flag.(cli.DocGenerationFlag)
		if v, is := flag.(cli.VisibleFlag); ok && (!is || v.IsVisible()) {
			list = append(list, f)
		}
	}
	return list
}

// describeFlag returns a flag's names with its value, and its description with its default.
func describeFlag(f cli.DocGenerationFlag) (names, description string) {
	usage := f.GetUsage()
	placeholder := ""
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		value, after, _ := strings.Cut(rest, "`")
		placeholder, usage = " "+value, before+value+after
		if description, ok := strings.CutPrefix(after, ": "); ok && before == "" {
			usage = description
		}
	} else if f.TakesValue() {
		placeholder = " VALUE"
	}
	list := []string{}
	for _, name := range f.Names() {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		list = append(list, dashes+name)
	}
	names = strings.Join(list, ", ") + placeholder
	if slice, ok := f.(cli.DocGenerationSliceFlag); ok && slice.IsSliceFlag() {
		usage += "; can be repeated"
	}
	if value := defaultOf(f); value != "" {
		usage += " (default: " + value + ")"
	}
	if env := f.GetEnvVars(); len(env) > 0 {
		usage += " [$" + strings.Join(env, ", $") + "]"
	}
	return names, usage
}

// defaultOf returns a flag's default value as the help shows it, or "".
func defaultOf(f cli.DocGenerationFlag) string {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return ""
	case *cli.StringFlag:
		if f.DefaultText == "" {
			return f.Value
		}
	case *cli.IntFlag:
		if f.DefaultText == "" && f.Value == 0 {
			return ""
		}
	}
	text := strings.Trim(f.GetDefaultText(), `"`)
	if d, ok := f.(*cli.DurationFlag); ok && d.Value%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// Wrap breaks a text into lines of at most width characters.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
