package command

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// completeCommandName is the hidden command that the completion scripts call with the words on the
// command line.
const completeCommandName = "__complete"

const bashCompletion = `FUNCTION() {
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F FUNCTION PROGRAM
`

const zshCompletion = `#compdef PROGRAM
FUNCTION() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#candidates} )); then compadd -a candidates; else _files; fi
}
compdef FUNCTION PROGRAM
`

const fishCompletion = `function _FUNCTION_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $candidates) -gt 0
    printf '%s\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c PROGRAM -f -a '(_FUNCTION_complete)'
`

// CompletionCommand prints completion scripts. what is a list of the completed words.
func CompletionCommand(u *UI, what string) *cli.Command {
	return &cli.Command{
		Name: "completion", ArgsUsage: "SHELL", Usage: "print a shell completion script",
		Description: "SHELL is bash, zsh or fish. Completes " + what + ".",
		UsageText:   Examples("pmk-sched completion bash", "pmk-sched completion zsh"),
		Action: func(c *cli.Context) error {
			scripts := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
			script, ok := scripts[c.Args().First()]
			if !ok {
				return problem.Invalidf("", "invalid SHELL %q: must be bash, zsh or fish", c.Args().First())
			}
			program := strings.TrimPrefix(c.App.Name, "kubectl ")
			function := "_" + strings.ReplaceAll(program, "-", "_")
			_, err := strings.NewReplacer("PROGRAM", program, "FUNCTION", function).WriteString(u.Out, script)
			return err
		},
	}
}

// completeCommand prints the candidates for its last argument, the word that is being typed.
func (p *Program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: completeCommandName, Hidden: true, ArgsUsage: "WORD ...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				words = []string{""}
			}
			for _, candidate := range p.complete(c.Context, words) {
				if _, err := io.WriteString(p.UI.Out, candidate+"\n"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// complete returns the candidates for the last word of a command line.
func (p *Program) complete(ctx context.Context, words []string) []string {
	commands, flags, path, argument := p.App.Commands, p.App.Flags, "", ""
	var pending cli.Flag // whose value is the next word
	for _, word := range words[:len(words)-1] {
		if pending != nil {
			pending = nil
			continue
		}
		if strings.HasPrefix(word, "-") {
			pending = flagWithValue(flags, word)
			continue
		}
		if i := slices.IndexFunc(commands, func(cmd *cli.Command) bool { return cmd.Name == word && !cmd.Hidden }); i >= 0 {
			cmd := commands[i]
			path, flags, commands = path+" "+word, slices.Concat(cmd.Flags, p.App.Flags), cmd.Subcommands
			if argument = ""; cmd.ArgsUsage == nameArgument {
				argument = nameFlag
			}
		}
	}
	last := words[len(words)-1]
	var all []string
	switch {
	case pending != nil:
		all = p.values(ctx, path, pending.Names()[0])
	case strings.HasPrefix(last, "-"):
		for _, flag := range flags {
			all = append(all, "--"+flag.Names()[0])
		}
	case len(commands) > 0:
		for _, cmd := range commands {
			if !cmd.Hidden {
				all = append(all, cmd.Name)
			}
		}
	default:
		all = p.values(ctx, path, argument)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return !strings.HasPrefix(s, last) })
}

// values returns completions for the value of a command's flag or, if the flag is empty, for the
// command's argument.
func (p *Program) values(ctx context.Context, path, flag string) []string {
	switch {
	case flag == "branch":
		return Releases()
	case flag == "output":
		return []string{"json", "table", "yaml"}
	case path == " completion":
		return []string{"bash", "fish", "zsh"}
	case p.Candidates != nil:
		return p.Candidates(ctx, path, flag)
	}
	return nil
}

// Releases returns the names of the supported releases.
func Releases() []string {
	var names []string
	for _, r := range versions.Releases() {
		names = append(names, r.String())
	}
	return names
}

// flagWithValue returns the flag that a word names, if its value is the next word.
func flagWithValue(flags []cli.Flag, word string) cli.Flag {
	name := strings.TrimLeft(word, "-")
	for _, flag := range flags {
		if f, ok := flag.(cli.DocGenerationFlag); ok && f.TakesValue() && slices.Contains(flag.Names(), name) {
			return flag
		}
	}
	return nil
}
