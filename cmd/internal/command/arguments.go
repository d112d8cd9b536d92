package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// nameFlag names the object on which a command works. The argument of a command that takes no
// other argument is its value too.
const nameFlag = "name"

// nameArgument is the ArgsUsage of a command with [nameFlag] and no other arguments.
const nameArgument = "[NAME]"

// flagsFirst moves the flags after a command's arguments before them, since the library parses no
// flag after an argument. "--" ends the flags. A command whose ArgsUsage ends in " ..." passes its
// arguments on as they are.
func (p *Program) flagsFirst(args []string) []string {
	var cmd *cli.Command
	commands, flags := p.App.Commands, p.App.Flags
	for i := 1; i < len(args) && args[i] != "--"; i++ {
		if isFlag(args[i]) {
			if flagWithValue(flags, args[i]) != nil {
				i++
			}
			continue
		}
		if at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == args[i] }); at >= 0 {
			cmd = commands[at]
			commands, flags = cmd.Subcommands, cmd.Flags
			continue
		}
		if cmd == nil || cmd.SkipFlagParsing || strings.HasSuffix(cmd.ArgsUsage, " ...") {
			break
		}
		return slices.Concat(args[:i], sortFlags(args[i:], flags))
	}
	return args
}

// sortFlags returns flags with their values, followed by the other words. The library takes a word
// after --help for a command.
func sortFlags(words []string, flags []cli.Flag) []string {
	var first, rest []string
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--":
			return slices.Concat(first, []string{"--"}, rest, words[i+1:])
		case words[i] == "--help" || words[i] == "-h":
			return words[i : i+1]
		case !isFlag(words[i]):
			rest = append(rest, words[i])
		case flagWithValue(flags, words[i]) != nil:
			first = append(first, words[i:min(i+2, len(words))]...)
			i++
		default:
			first = append(first, words[i])
		}
	}
	return append(first, rest...)
}

// isFlag reports whether a word is a flag: "-" is standard input.
func isFlag(word string) bool { return strings.HasPrefix(word, "-") && word != "-" }

// checkArguments returns an error for arguments that the command does not take.
func checkArguments(c *cli.Context, cmd *cli.Command) error {
	if cmd.ArgsUsage == nameArgument && c.NArg() == 1 {
		return takeName(c)
	}
	args := c.Args().Slice()
	if most := len(strings.Fields(cmd.ArgsUsage)); len(args) > most && !strings.HasSuffix(cmd.ArgsUsage, "...") {
		hint := SeeHelp(c)
		if hasFlag(cmd, "file") && strings.ContainsAny(args[most], "./") {
			hint = "name a file with --file " + args[most]
		}
		return problem.Invalidf(hint, "unexpected argument %q", args[most])
	}
	return nil
}

// takeName sets --name to the command's argument.
func takeName(c *cli.Context) error {
	name := c.Args().First()
	switch {
	case hasFlag(c.Command, "file") && (name == "-" || strings.ContainsAny(name, "./")):
		return problem.Invalidf("name a file with --file "+name, "unexpected argument %q: not a name", name)
	case c.IsSet(nameFlag) && c.String(nameFlag) != name:
		return problem.Invalidf("", "the argument %q and --%s %q exclude each other", name, nameFlag, c.String(nameFlag))
	}
	return c.Set(nameFlag, name)
}

// hasFlag reports whether a command has a flag with a name.
func hasFlag(cmd *cli.Command, name string) bool {
	return slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
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

// CheckList returns an error if a list of arguments is empty.
func CheckList(c *cli.Context) error {
	if c.NArg() == 0 {
		return problem.Invalidf(SeeHelp(c), "%s is required", strings.TrimSuffix(c.Command.ArgsUsage, "..."))
	}
	return nil
}
