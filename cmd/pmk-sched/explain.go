package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
)

func explainCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "explain", ArgsUsage: "POD", Usage: "explain why a pod is pending, or why it runs on its node",
		Description: "Groups and counts nodes by the reason for rejecting the pod, names the plugin or extender, and " +
			"computes changes that would make the pod fit, from the nodes and the pods on them. For a pod that does not " +
			"exist, events show why it was evicted or is not created. --namespace is the namespace of the pod, by default " +
			"\"default\". Changes nothing.\n\n" +
			"--exact runs the scheduler itself, as `simulate` does, and shows for each node which plugin or extender rejects " +
			"it or how it is scored.",
		UsageText: command.Examples("pmk-sched explain web-0",
			"pmk-sched explain web-0 -n shop -o json",
			"pmk-sched explain web-0 -n shop --exact --snapshot cluster.tar.gz --node worker-7"),
		Flags: append([]cli.Flag{command.OutputFlag("")}, exactFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return problem.Invalidf(command.SeeHelp(c), "the name of a pod is required")
			}
			namespace, pod := cmp.Or(u.Namespace, metav1.NamespaceDefault), c.Args().First()
			if c.Bool("exact") {
				return explainExactly(c, u, namespace, pod)
			}
			if err := requireExact(c); err != nil {
				return err
			}
			report, err := collect.Explain(c.Context, u.Session, namespace, pod)
			if err != nil {
				return err
			}
			u.Warn(report.Unknown...)
			return u.Data(c.String("output"), report, explainTable(report))
		},
	}
}

func explainTable(r *explain.Report) string {
	var p printer
	state := "is pending for " + (time.Duration(r.Seconds) * time.Second).String()
	switch r.State {
	case explain.Bound:
		state = "is on node " + r.Node
	case explain.Missing:
		state = "does not exist"
	}
	if r.Routed {
		state += ", routed to scheduler " + r.Scheduler
	}
	p.Line("pod %s/%s %s: %s\n", r.Namespace, r.Pod, state, oneLine(r.Summary))
	p.Row("NODES", "CAUSE", "BY", "REASON")
	var fixes []string
	for _, f := range r.Findings {
		nodes := "-"
		if f.Nodes > 0 {
			nodes = fmt.Sprintf("%d/%d", f.Nodes, r.Nodes)
		}
		p.Row(nodes, f.Cause, orDash(f.By), oneLine(f.Text))
		if f.Fix != "" {
			fixes = append(fixes, oneLine(f.Fix))
		}
	}
	remedies := "to make it fit:"
	if r.State != explain.Pending {
		remedies = "what to do:"
	}
	p.Head(len(fixes), remedies)
	for _, fix := range fixes {
		p.Row("- " + fix)
	}
	if r.Message != "" {
		p.Line("\nmessage of scheduler %s:\n%s", r.Scheduler, r.Message)
	}
	return p.String()
}
