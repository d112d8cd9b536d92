package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// run is the program without the process: it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	u := newUI(stdin, stdout, stderr)
	err := newApp(u).RunContext(ctx, args)
	var ran *exitError
	if err != nil && !errors.As(err, &ran) {
		u.fail(err)
	}
	return exitStatus(err)
}

// newApp wires the commands. Every command reads its flags into a struct and
// makes one call of a library.
func newApp(u *ui) *cli.App {
	app := &cli.App{
		Name:  "pmk-sched",
		Usage: "put a custom kube-scheduler on a cluster that already runs",
		Description: "Looks at the cluster, builds the kube-scheduler of exactly that release, packs it on busybox,\n" +
			"deploys it beside the default scheduler and proves that it schedules.\n\n" +
			"Exit status: 0 done; 1 failed; 2 the command line or a file is wrong; 3 it looked, and something does not hold.",
		Commands: []*cli.Command{
			detectCommand(u), buildCommand(u), renderCommand(u), diffCommand(u), checkCommand(u), deployCommand(u),
			verifyCommand(u), uninstallCommand(u), replaceCommand(u), restoreCommand(u), statusCommand(u),
			profileCommand(u), pluginCommand(u), extenderCommand(u), labCommand(u), versionCommand(u),
		},
		Flags:                     globalFlags(false),
		Reader:                    u.in,
		Writer:                    u.out,
		ErrWriter:                 u.err,
		HideVersion:               true, // its -v would hide what people mean by -v
		DisableSliceFlagSeparator: true, // "--arg a=1,b=2" is one value
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Before:                    func(c *cli.Context) error { return setUp(c, u) },
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.App.Commands)
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range app.Commands {
		harden(cmd, u)
	}
	return app
}

// harden gives a command, and those below it, what the library leaves out:
// global flags also after the command's name, errors instead of printed help,
// and a refusal of arguments that nobody reads.
func harden(cmd *cli.Command, u *ui) {
	cmd.OnUsageError = onUsageError
	cmd.Flags = append(cmd.Flags, globalFlags(true)...)
	for _, f := range cmd.Flags {
		if flag, ok := f.(*cli.BoolFlag); ok {
			flag.DisableDefaultText = true // "(default: false)" tells nobody anything
		}
	}
	if len(cmd.Subcommands) > 0 {
		for _, sub := range cmd.Subcommands {
			harden(sub, u)
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
		return setUp(c, u)
	}
}

// checkArguments refuses positional arguments that the command does not take,
// and flags that come after one: the library would take those for arguments and
// never say so. A command whose ArgsUsage ends in "..." passes them on.
func checkArguments(c *cli.Context, cmd *cli.Command) error {
	if strings.HasSuffix(cmd.ArgsUsage, "...") || c.NArg() == 0 {
		return nil
	}
	args := c.Args().Slice()
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && arg != "-" {
			return usagef("flags go before arguments: "+cmd.HelpName+" "+arg+" … "+args[0],
				"flag %s comes after the argument %q, where it would not be read", arg, args[0])
		}
	}
	if most := len(strings.Fields(cmd.ArgsUsage)); len(args) > most {
		return usagef(seeHelp(c), "unexpected argument %q", args[most])
	}
	return nil
}

func unknownCommand(c *cli.Context, known []*cli.Command) error {
	hint := seeHelp(c)
	if near := cli.SuggestCommand(known, c.Args().First()); near != "" {
		hint = strings.ToLower(near[:1]) + near[1:] + " " + hint
	}
	return usagef(hint, "unknown command %q", c.Args().First())
}

// onUsageError turns a flag that does not parse into our error, with the flag
// that was probably meant.
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
		return usagef(hint, "unknown flag %s%s", dashes, name)
	}
	return usagef(seeHelp(c), "%s", err)
}

func seeHelp(c *cli.Context) string {
	return "see " + strings.TrimSpace(c.Command.HelpName) + " --help"
}
