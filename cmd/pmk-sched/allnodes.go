package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

func allNodesFlag(verb string) cli.Flag {
	return &cli.BoolFlag{Name: "all-nodes",
		Usage: "print the command for each control-plane node and its progress, or, with --pod-image, " + verb + " them all"}
}

func podImageFlag() cli.Flag {
	return &cli.StringFlag{Name: "pod-image",
		Usage: "with --all-nodes: run in a pod of `IMAGE` on each node; `pmk-sched build self` makes it"}
}

type nodesCommand struct {
	// commandLine is the command to run on each node, printOnly whether it is printed only.
	commandLine string
	printOnly   bool
	yes         bool
	format      string
	// question is the question that the user confirms.
	question string
	plan     func(ctx context.Context, command string) ([]replace.NodePlan, error)
	run      func(ctx context.Context, version string) ([]replace.NodeResult, error)
}

func readNodesCommand(c *cli.Context) nodesCommand {
	return nodesCommand{
		commandLine: nodeCommandLine(c), printOnly: c.String("pod-image") == "" || c.Bool("dry-run"),
		yes: c.Bool("yes"), format: c.String("output"),
	}
}

func checkAllNodes(c *cli.Context) error {
	if c.String("pod-image") != "" && !c.Bool("all-nodes") {
		return problem.Invalidf("", "--pod-image requires --all-nodes")
	}
	return exclude(c, "", "pod-image", "node")
}

// do prints the command for each node, or runs it on each node.
func (n nodesCommand) do(ctx context.Context, u *ui) error {
	if n.printOnly {
		plan, err := n.plan(ctx, n.commandLine)
		if err != nil {
			return err
		}
		u.Say("run each command on its node, in this order, and continue only when it has succeeded")
		return u.Data(n.format, plan, nodesTable(plan))
	}
	if err := u.Confirm(ctx, n.yes, n.question); err != nil {
		return err
	}
	results, err := n.run(ctx, ownVersion())
	if len(results) > 0 || err == nil {
		err = errors.Join(err, u.Data(n.format, results, resultsTable(results)))
	}
	return err
}

func nodesTable(plan []replace.NodePlan) string {
	var p printer
	p.Row("NODE", "DONE", "READY", "LEADER", "IMAGE", "COMMAND")
	for _, n := range plan {
		p.Row(n.Node, n.Done, n.Ready && n.SchedulerReady, n.Leads, orDash(n.Image), n.Command)
	}
	return p.String()
}

func resultsTable(results []replace.NodeResult) string {
	var p printer
	p.Row("NODE", "CHANGED", "SCHEDULER", "BACKUP")
	for _, r := range results {
		p.Row(r.Node, r.Changed, cmp.Or(r.Image, "manifest "+r.Manifest), orDash(r.Backup))
	}
	return p.String()
}

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
	return slices.ContainsFunc(globalFlags(), func(f command.GlobalFlag) bool { return f.Name == name })
}

// setFlag returns a flag with its values, quoted for a shell, from the first context in which it is
// set. It returns nil if the flag is not set.
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
