// Package command is shared by the programs with several commands: global flags, help, completion,
// output, errors with hints and exit statuses.
package command

import (
	"cmp"
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// Program is a program with several commands.
type Program struct {
	// App defines the name, the texts and the commands. [Program.Complete] adds the rest.
	App *cli.App
	UI  *UI
	// Globals are the global flags.
	Globals []GlobalFlag
	// Moved are flags that became commands, in the order in which they are replaced.
	Moved []Moved
	// Start are the command lines that the program prints without arguments, in place of its help.
	Start []Start
	// Synonyms are the words that other programs use for commands of this one.
	Synonyms map[string]string
	// Candidates returns completions for the value of a command's flag or, if the flag is empty, for
	// the command's argument. path is the command with a space before each word.
	Candidates func(ctx context.Context, path, flag string) []string
}

// Run runs the program and returns the exit status.
func (p *Program) Run(ctx context.Context, args []string) int {
	err := p.Execute(steps.WithProgress(ctx, p.UI.Progress), args)
	var ran *ExitError
	if err != nil && !errors.As(err, &ran) {
		p.UI.Fail(err)
	}
	return ExitStatus(err)
}

// Execute runs a command line.
func (p *Program) Execute(ctx context.Context, args []string) error {
	return p.App.RunContext(ctx, p.flagsFirst(p.current(args)))
}

// Complete adds global flags, help, completion, and errors instead of printed help.
func (p *Program) Complete() {
	app := p.App
	app.Flags = append(beforeCommand(p.Globals), &cli.BoolFlag{Name: versionFlag, Usage: "print the version"})
	app.Reader, app.Writer, app.ErrWriter = p.UI.In, p.UI.Out, p.UI.err
	app.HideVersion = true               // its -v would print the version where users expect verbose output
	app.DisableSliceFlagSeparator = true // "--arg a=1,b=2" is one value
	app.ExitErrHandler = func(*cli.Context, error) {}
	app.OnUsageError = onUsageError
	app.Before = p.readGlobals
	app.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			return p.unknownCommand(c, c.App.Commands)
		}
		if c.Bool(versionFlag) {
			return p.UI.printVersion(app.Name, "table")
		}
		if len(p.Start) > 0 {
			_, err := p.UI.Out.Write([]byte(StartHelp(app, p.Start)))
			return err
		}
		return cli.ShowAppHelp(c)
	}
	app.Commands = append(app.Commands, p.completeCommand(), manCommand(app))
	for _, cmd := range app.Commands {
		p.addDefaults(cmd)
	}
	addHelp(app)
}

// Group sets the commands' category, under which the help lists them.
func Group(category string, commands ...*cli.Command) []*cli.Command {
	for _, cmd := range commands {
		cmd.Category = category
	}
	return commands
}

// readGlobals reads the global flags and prepares the session.
func (p *Program) readGlobals(c *cli.Context) error {
	g, err := readGlobals(c)
	if err != nil {
		return err
	}
	return p.UI.setUp(g)
}

// addDefaults adds features that the library lacks to a command and its subcommands: global flags
// after the command's name, errors instead of printed help, and an error for arguments that are not
// used.
func (p *Program) addDefaults(cmd *cli.Command) {
	cmd.OnUsageError = onUsageError
	named := hasFlag(cmd, nameFlag)
	if named && cmd.ArgsUsage == "" {
		cmd.ArgsUsage = nameArgument
	}
	cmd.Flags = append(cmd.Flags, afterCommand(p.Globals)...)
	if len(cmd.Subcommands) > 0 {
		for _, sub := range cmd.Subcommands {
			p.addDefaults(sub)
		}
		action := cmd.Action
		if action == nil {
			action = cli.ShowSubcommandHelp
		}
		cmd.Before = p.readGlobals
		cmd.Action = func(c *cli.Context) error {
			if c.Args().Present() && (!named || nearestCommand(c.Args().First(), cmd.Subcommands) != "") {
				return p.unknownCommand(c, cmd.Subcommands)
			}
			if err := checkArguments(c, cmd); err != nil {
				return err
			}
			return action(c)
		}
		return
	}
	cmd.HideHelpCommand = true // `pmk-lab exec -- help` is a command to run
	cmd.Before = func(c *cli.Context) error {
		if err := cmp.Or(p.checkParent(c), checkArguments(c, cmd)); err != nil {
			return err
		}
		return p.readGlobals(c)
	}
}
