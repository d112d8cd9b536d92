package command

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// unknownCommand is the error for a word that is no command.
func (p *Program) unknownCommand(c *cli.Context, known []*cli.Command) error {
	word, hint := c.Args().First(), SeeHelp(c)
	meant := nearestCommand(word, known)
	if len(c.Lineage()) <= 2 {
		meant = cmp.Or(p.Synonyms[word], meant)
	}
	if meant != "" {
		hint = "did you mean " + meant + "? " + hint
	}
	return problem.Invalidf(hint, "unknown command %q", word)
}

func nearestCommand(word string, known []*cli.Command) string {
	var names []string
	for _, cmd := range known {
		if !cmd.Hidden {
			names = append(names, cmd.Name)
		}
	}
	return schema.Nearest(word, names)
}

// onUsageError turns a flag that does not parse into a usage error with a suggestion.
func onUsageError(c *cli.Context, err error, _ bool) error {
	const undefined = "flag provided but not defined: -"
	name, ok := strings.CutPrefix(err.Error(), undefined)
	if !ok {
		return problem.Invalidf(SeeHelp(c), "%s", err)
	}
	hint, dashes := SeeHelp(c), "-"
	name = strings.TrimPrefix(name, "-")
	if len(name) > 1 {
		dashes = "--"
		var names []string
		for _, flag := range c.Command.Flags {
			names = append(names, flag.Names()[0])
		}
		if meant := schema.Nearest(name, names); meant != "" {
			hint = "did you mean --" + meant + "? " + hint
		}
	}
	return problem.Invalidf(hint, "unknown flag %s%s", dashes, name)
}

// SeeHelp is the hint that names the command's help.
func SeeHelp(c *cli.Context) string {
	return "see " + strings.TrimSpace(c.Command.HelpName) + " --help"
}
