package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	u := newUI(stdin, stdout, stderr)
	name := "pmk-sched"
	if len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), "kubectl-") {
		name = "kubectl pmk-sched"
	}
	err := newApp(u, name).RunContext(steps.WithProgress(ctx, u.progress), args)
	var ran *exitError
	if err != nil && !errors.As(err, &ran) {
		u.fail(err)
	}
	return exitStatus(err)
}

// newApp returns the program with all its commands. name is the executable's name: the plugin
// kubectl-pmk_sched is shown as `kubectl pmk-sched`.
func newApp(u *ui, name string) *cli.App {
	app := &cli.App{
		Name: name, Usage: "install a custom kube-scheduler on a running Kubernetes cluster",
		Description: "Inspects the cluster, builds the kube-scheduler of exactly its release, packs it on busybox, deploys " +
			"it alongside the default scheduler or in place of it, and verifies that it schedules.\n\n" +
			"Ctrl-C, SIGTERM and a closed terminal undo what is not finished; a second Ctrl-C or SIGTERM ends the undo.\n\n" +
			"Exit status: 0 success; 1 failure; 2 usage or input error; 3 check failed or drift found.",
		Commands: slices.Concat(
			group("install", detectCommand(u), checkCommand(u), renderCommand(u), diffCommand(u), deployCommand(u),
				migrateCommand(u), verifyCommand(u), uninstallCommand(u), replaceCommand(u), restoreCommand(u), extenderCommand(u)),
			group("look after", statusCommand(u), historyCommand(u), rollbackCommand(u), upgradeCommand(u),
				credentialsCommand(u),
				explainCommand(u), logsCommand(u), sysdumpCommand(u), fleetCommand(u), controllerCommand(u)),
			group("foresee", snapshotCommand(u), recordCommand(u), simulateCommand(u), testCommand(u), tuneCommand(u),
				shadowCommand(u),
				benchCommand(u)),
			group("build", buildCommand(u), verifyImageCommand(u), bundleCommand(u), pluginCommand(u), profileCommand(u),
				schemaCommand(u)),
			group("try", labCommand(u)),
			group("", completionCommand(u), versionCommand(u)),
		),
		Flags:                     globalFlags(false),
		Reader:                    u.in,
		Writer:                    u.out,
		ErrWriter:                 u.err,
		HideVersion:               true, // its -v would print the version where users expect verbose output
		DisableSliceFlagSeparator: true, // "--arg a=1,b=2" is one value
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Before:                    func(c *cli.Context) error { return readAndSetUp(c, u) },
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.App.Commands)
			}
			return cli.ShowAppHelp(c)
		},
	}
	app.Commands = append(app.Commands, hiddenCommands(u, app)...)
	for _, cmd := range app.Commands {
		addDefaults(cmd, u)
	}
	addHelp(app)
	return app
}

// group sets the commands' category, under which the help lists them.
func group(category string, commands ...*cli.Command) []*cli.Command {
	for _, cmd := range commands {
		cmd.Category = category
	}
	return commands
}

// readAndSetUp reads the global flags and prepares the session.
func readAndSetUp(c *cli.Context, u *ui) error {
	g, err := readGlobals(c)
	if err != nil {
		return err
	}
	return u.setUp(g)
}

// addDefaults adds features that the library lacks to a command and its subcommands: global flags
// after the command's name, errors instead of printed help, and an error for arguments that are not
// used.
func addDefaults(cmd *cli.Command, u *ui) {
	cmd.OnUsageError = onUsageError
	cmd.Flags = append(cmd.Flags, globalFlags(true)...)
	if len(cmd.Subcommands) > 0 {
		for _, sub := range cmd.Subcommands {
			addDefaults(sub, u)
		}
		cmd.Action = func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, cmd.Subcommands)
			}
			return cli.ShowSubcommandHelp(c)
		}
		return
	}
	cmd.HideHelpCommand = true // `lab exec -- help` is a command to run
	cmd.Before = func(c *cli.Context) error {
		if err := checkArguments(c, cmd); err != nil {
			return err
		}
		return readAndSetUp(c, u)
	}
}

// checkArguments returns an error for arguments that the command does not take, and for flags after
// an argument, which the library takes for arguments. A command whose ArgsUsage ends in "..."
// passes them on.
func checkArguments(c *cli.Context, cmd *cli.Command) error {
	if strings.HasSuffix(cmd.ArgsUsage, "...") || c.NArg() == 0 {
		return nil
	}
	args := c.Args().Slice()
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && arg != "-" {
			return problem.Invalidf("flags go before arguments: "+cmd.HelpName+" "+arg+" … "+args[0],
				"flag %s comes after the argument %q", arg, args[0])
		}
	}
	if most := len(strings.Fields(cmd.ArgsUsage)); len(args) > most {
		return problem.Invalidf(seeHelp(c), "unexpected argument %q", args[most])
	}
	return nil
}

// checkList returns an error if a list of arguments is empty or has a flag.
func checkList(c *cli.Context) error {
	if c.NArg() == 0 {
		return problem.Invalidf(seeHelp(c), "%s is required", strings.TrimSuffix(c.Command.ArgsUsage, "..."))
	}
	for _, arg := range c.Args().Slice() {
		if strings.HasPrefix(arg, "-") {
			return problem.Invalidf("flags go before arguments", "flag %s comes after the argument %q", arg, c.Args().First())
		}
	}
	return nil
}

func unknownCommand(c *cli.Context, known []*cli.Command) error {
	hint := seeHelp(c)
	if near := cli.SuggestCommand(known, c.Args().First()); near != "" {
		hint = strings.ToLower(near[:1]) + near[1:] + " " + hint
	}
	return problem.Invalidf(hint, "unknown command %q", c.Args().First())
}

// onUsageError turns a flag that does not parse into a usage error with a suggestion.
func onUsageError(c *cli.Context, err error, _ bool) error {
	const undefined = "flag provided but not defined: -"
	if name, ok := strings.CutPrefix(err.Error(), undefined); ok {
		hint := seeHelp(c)
		if near := cli.SuggestFlag(c.Command.Flags, strings.TrimLeft(name, "-"), false); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		dashes := "-"
		if len(name) > 1 && name[0] != '-' {
			dashes = "--"
		}
		return problem.Invalidf(hint, "unknown flag %s%s", dashes, name)
	}
	return problem.Invalidf(seeHelp(c), "%s", err)
}

func seeHelp(c *cli.Context) string {
	return "see " + strings.TrimSpace(c.Command.HelpName) + " --help"
}

// Exit statuses.
const (
	statusSuccess     = 0
	statusFailure     = 1
	statusUsage       = 2 // usage or input error; nothing was changed
	statusCheckFailed = 3 // a check failed, or drift was found
)

// checkFailed is a finding, not a failure.
type checkFailed struct{ text string }

func (e *checkFailed) Error() string     { return e.text }
func (e *checkFailed) CheckFailed() bool { return true }

// exitError is an exit status without a message.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func exitStatus(err error) int {
	var exit *exitError
	var check interface{ CheckFailed() bool }
	switch {
	case err == nil:
		return statusSuccess
	case errors.As(err, &exit):
		return exit.status
	case problem.IsInvalid(err):
		return statusUsage
	case errors.As(err, &check) && check.CheckFailed():
		return statusCheckFailed
	default:
		return statusFailure
	}
}
