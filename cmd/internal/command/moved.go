package command

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Moved is a flag of a command that became a command. The old form works as before, with a note.
type Moved struct {
	// Command and Flag are the old form, without the program's name and dashes.
	Command, Flag string
	// To is the command that replaces them.
	To string
	// As is the flag's new name. It is empty if the command alone replaces the flag.
	As string
}

// current returns the arguments with each old form replaced by its new form, and prints a note for
// them.
func (p *Program) current(args []string) []string {
	at := p.commandAt(args)
	if at < 0 || at+1 < len(args) && !strings.HasPrefix(args[at+1], "-") { // a subcommand is a new form
		return args
	}
	old, now := args[at], args[at]
	words := slices.Clone(args[at+1:])
	for _, m := range p.Moved {
		i := indexOfFlag(words, m.Flag)
		if m.Command != now || i < 0 {
			continue
		}
		old, now = old+" --"+m.Flag, m.To
		_, value, assigned := strings.Cut(words[i], "=")
		switch {
		case m.As == "":
			words = slices.Delete(words, i, i+1)
		case assigned:
			words[i] = "--" + m.As + "=" + value
		default:
			words[i] = "--" + m.As
		}
	}
	if now == args[at] {
		return args
	}
	p.UI.Say("note: `%s %s` is now `%[1]s %[3]s`", p.App.Name, old, now)
	return slices.Concat(args[:at], strings.Fields(now), words)
}

// commandAt returns the index of the command in arguments, or -1.
func (p *Program) commandAt(args []string) int {
	var pending cli.Flag // whose value is the next word
	for i := 1; i < len(args); i++ {
		switch {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(args[i], "-"):
			pending = flagWithValue(p.App.Flags, args[i])
		default:
			return i
		}
	}
	return -1
}

// indexOfFlag returns the index of the word that sets a flag, or -1.
func indexOfFlag(words []string, flag string) int {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.IndexFunc(words, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return name == "--"+flag || name == "-"+flag
	})
}
