package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// nodeCommandLine returns the command to run on each node: with all flags that are set, except
// flags that concern only this run.
func nodeCommandLine(c *cli.Context) string {
	var globals []string
	var words []string
	for _, flag := range c.Command.Flags {
		switch name := flag.Names()[0]; {
		case isGlobalFlag(name):
			globals = append(globals, setFlag(c.Lineage(), flag)...)
		case !slices.Contains([]string{"all-nodes", "pod-image", "node", "output", "yes", "help"}, name):
			words = append(words, setFlag(c.Lineage()[:1], flag)...)
		}
	}
	return strings.Join(slices.Concat([]string{"pmk-sched"}, globals, []string{c.Command.Name, "--yes"}, words), " ")
}

func isGlobalFlag(name string) bool {
	return slices.ContainsFunc(globalFlags(true), func(f cli.Flag) bool { return f.Names()[0] == name })
}

// setFlag returns a flag with its values, quoted for a shell, from the first of the contexts in
// which it is set. It returns nil if the flag is not set.
func setFlag(levels []*cli.Context, flag cli.Flag) []string {
	name := flag.Names()[0]
	at := slices.IndexFunc(levels, func(c *cli.Context) bool { return slices.Contains(c.LocalFlagNames(), name) })
	if at < 0 {
		return nil
	}
	var words []string
	switch value := levels[at].Value(name).(type) {
	case cli.StringSlice:
		for _, v := range value.Value() {
			words = append(words, "--"+name, quote(v))
		}
	case bool:
		if words = []string{"--" + name}; !value {
			words[0] += "=false"
		}
	default:
		words = []string{"--" + name, quote(fmt.Sprint(value))}
	}
	return words
}

// plainWord matches a word that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
