package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
)

func explainCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain why a pod is pending, or why it runs on its node",
		ArgsUsage: "POD",
		Description: "Groups and counts nodes by the reason for rejecting the pod, names the\n" +
			"plugin or extender, and computes changes that would make the pod fit, from the\n" +
			"nodes and the pods on them. For a pod that does not exist, events of its workload\n" +
			"show why it is not created. --namespace is the namespace of the pod, by default\n" +
			"\"default\". Changes nothing.\n\n" +
			"--exact runs the scheduler itself, as `simulate` does, and shows for each node\n" +
			"which plugin or extender rejects it or how it is scored.",
		UsageText: examples(
			"pmk-sched explain web-0",
			"pmk-sched explain -n shop -o json web-0",
			"pmk-sched explain --exact --snapshot cluster.tar.gz --node worker-7 -n shop web-0",
		),
		Flags: append([]cli.Flag{outputFlag("")}, exactFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return problem.Invalidf(seeHelp(c), "the name of a pod is required")
			}
			namespace, pod := cmp.Or(u.namespace, metav1.NamespaceDefault), c.Args().First()
			if c.Bool("exact") {
				return explainExactly(c, u, namespace, pod)
			}
			if err := requireExact(c); err != nil {
				return err
			}
			report, err := u.foresight.Explain(c.Context, namespace, pod)
			if err != nil {
				return err
			}
			for _, unknown := range report.Unknown {
				u.warn(unknown)
			}
			return u.data(c.String("output"), report, explainTable(report))
		},
	}
}

func explainTable(r *explain.Report) func(io.Writer) error {
	return func(w io.Writer) error {
		var text bytes.Buffer
		age := (time.Duration(r.Seconds) * time.Second).String()
		switch r.State {
		case explain.Bound:
			fmt.Fprintf(&text, "pod %s/%s is on node %s: %s\n", r.Namespace, r.Pod, r.Node, oneLine(r.Summary))
		case explain.Missing:
			fmt.Fprintf(&text, "pod %s/%s does not exist: %s\n", r.Namespace, r.Pod, oneLine(r.Summary))
		default:
			fmt.Fprintf(&text, "pod %s/%s is pending for %s: %s\n", r.Namespace, r.Pod, age, oneLine(r.Summary))
		}
		fmt.Fprintln(&text, "\nNODES\tCAUSE\tBY\tREASON")
		for _, f := range r.Findings {
			nodes := "-"
			if f.Nodes > 0 {
				nodes = fmt.Sprintf("%d/%d", f.Nodes, r.Nodes)
			}
			fmt.Fprintf(&text, "%s\t%s\t%s\t%s\n", nodes, f.Cause, orDash(f.By), oneLine(f.Text))
		}
		fixes := 0
		for _, f := range r.Findings {
			if f.Fix == "" {
				continue
			}
			if fixes++; fixes == 1 {
				fmt.Fprintln(&text, "\nto make it fit:")
			}
			fmt.Fprintf(&text, "- %s\n", oneLine(f.Fix))
		}
		if r.Message != "" {
			fmt.Fprintf(&text, "\nmessage of scheduler %s:\n%s\n", r.Scheduler, r.Message)
		}
		_, err := text.WriteTo(w)
		return err
	}
}

// oneLine replaces line breaks and repeated spaces, which would break a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
