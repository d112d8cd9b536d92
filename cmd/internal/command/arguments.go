package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

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
		return problem.Invalidf(SeeHelp(c), "unexpected argument %q", args[most])
	}
	return nil
}

// checkParent returns an error for flags between a command and its subcommand, which has flags with
// the same names. A flag with a variable may be set by it.
func (p *Program) checkParent(c *cli.Context) error {
	parent := c.Lineage()[1]
	for _, flag := range parent.Command.Flags {
		f, name := flag.(cli.DocGenerationFlag), flag.Names()[0]
		global := slices.ContainsFunc(p.Globals, func(g GlobalFlag) bool { return g.Name == name })
		if !global && len(f.GetEnvVars()) == 0 && slices.Contains(parent.LocalFlagNames(), name) {
			return problem.Invalidf("flags go after the command: "+c.Command.HelpName+" --"+name+" …",
				"flag --%s comes before the command %s", name, c.Command.Name)
		}
	}
	return nil
}

// CheckList returns an error if a list of arguments is empty or has a flag.
func CheckList(c *cli.Context) error {
	if c.NArg() == 0 {
		return problem.Invalidf(SeeHelp(c), "%s is required", strings.TrimSuffix(c.Command.ArgsUsage, "..."))
	}
	for _, arg := range c.Args().Slice() {
		if strings.HasPrefix(arg, "-") {
			return problem.Invalidf("flags go before arguments", "flag %s comes after the argument %q", arg, c.Args().First())
		}
	}
	return nil
}

func unknownCommand(c *cli.Context, known []*cli.Command) error {
	hint := SeeHelp(c)
	if near := cli.SuggestCommand(known, c.Args().First()); near != "" {
		hint = strings.ToLower(near[:1]) + near[1:] + " " + hint
	}
	return problem.Invalidf(hint, "unknown command %q", c.Args().First())
}

// onUsageError turns a flag that does not parse into a usage error with a suggestion.
func onUsageError(c *cli.Context, err error, _ bool) error {
	const undefined = "flag provided but not defined: -"
	if name, ok := strings.CutPrefix(err.Error(), undefined); ok {
		hint := SeeHelp(c)
		if near := cli.SuggestFlag(c.Command.Flags, strings.TrimLeft(name, "-"), false); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		dashes := "-"
		if len(name) > 1 && name[0] != '-' {
			dashes = "--"
		}
		return problem.Invalidf(hint, "unknown flag %s%s", dashes, name)
	}
	return problem.Invalidf(SeeHelp(c), "%s", err)
}

// SeeHelp is the hint that names the command's help.
func SeeHelp(c *cli.Context) string {
	return "see " + strings.TrimSpace(c.Command.HelpName) + " --help"
}
