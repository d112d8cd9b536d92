package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// completeCommandName is the hidden command that the completion scripts call with the words on the
// command line.
const completeCommandName = "__complete"

const bashCompletion = `_pmk_sched() {
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _pmk_sched pmk-sched
`

const zshCompletion = `#compdef pmk-sched
_pmk_sched() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#candidates} )); then compadd -a candidates; else _files; fi
}
compdef _pmk_sched pmk-sched
`

const fishCompletion = `function __pmk_sched_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $candidates) -gt 0
    printf '%s\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c pmk-sched -f -a '(__pmk_sched_complete)'
`

func completionCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "completion", ArgsUsage: "SHELL", Usage: "print a shell completion script",
		Description: "SHELL is bash, zsh or fish. Completes commands, flags, presets, releases and the names of " +
			"schedulers.",
		UsageText: examples("pmk-sched completion bash", "pmk-sched completion zsh"),
		Action: func(c *cli.Context) error {
			scripts := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
			script, ok := scripts[c.Args().First()]
			if !ok {
				return problem.Invalidf("", "invalid SHELL %q: must be bash, zsh or fish", c.Args().First())
			}
			_, err := io.WriteString(u.out, script)
			return err
		},
	}
}

// completeCommand prints the candidates for its last argument, the word that is being typed.
func completeCommand(u *ui, app *cli.App) *cli.Command {
	return &cli.Command{
		Name: completeCommandName, Hidden: true, ArgsUsage: "WORD ...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) == 0 {
				words = []string{""}
			}
			schedulers := func() []string { return schedulerNames(c.Context, u) }
			for _, candidate := range candidates(app, words, schedulers) {
				if _, err := io.WriteString(u.out, candidate+"\n"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func candidates(app *cli.App, words []string, schedulers func() []string) []string {
	commands, flags, path := app.Commands, app.Flags, ""
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
			path, flags, commands = path+" "+word, slices.Concat(commands[i].Flags, app.Flags), commands[i].Subcommands
		}
	}
	last := words[len(words)-1]
	var all []string
	switch {
	case pending != nil:
		all = flagValues(pending.Names()[0], path, schedulers)
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
	case path == " profile show":
		all = presetNames()
	case path == " completion":
		all = []string{"bash", "fish", "zsh"}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return !strings.HasPrefix(s, last) })
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

// flagValues are the values for a command's flag.
func flagValues(flag, path string, schedulers func() []string) []string {
	switch {
	case flag == "preset":
		return presetNames()
	case flag == "branch" || flag == "to" && path != " rollback":
		var names []string
		for _, r := range versions.Releases() {
			names = append(names, r.String())
		}
		return names
	case flag == "output":
		return []string{"json", "table", "yaml"}
	case flag == "name" && !strings.HasPrefix(path, " lab") && !strings.HasPrefix(path, " extender"), flag == "for":
		return schedulers()
	}
	return nil
}

func presetNames() []string {
	var names []string
	for _, p := range profiles.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// completionTimeout bounds the wait for the cluster while the user waits for a completion.
const completionTimeout = 2 * time.Second

// schedulerNames returns the deployed schedulers' names, or nil if the cluster does not answer.
func schedulerNames(ctx context.Context, u *ui) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	names, _ := lifecycle.SchedulerNames(ctx, u.session)
	return names
}
