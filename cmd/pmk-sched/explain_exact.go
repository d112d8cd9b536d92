package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
)

func exactFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "exact", Usage: "run the scheduler itself on a copy of the objects; the flags below need it"},
		&cli.StringFlag{Name: "node", Usage: "explain which changes would make `NODE` win"},
	}, simulatedFlags(timeoutFlag(simulateTimeout, "the scheduler to decide about the pod"))...)
}

func explainExactly(c *cli.Context, u *ui, namespace, pod string) error {
	in, err := readInput(c, u)
	if err != nil {
		return err
	}
	result, err := decision.Run(c.Context, u.Session, decision.Request{
		Input: in, Namespace: namespace, Pod: pod, Node: c.String("node"),
		Described: slices.ContainsFunc([]string{"file", "name", "preset", "config", "with"}, c.IsSet),
	})
	if err != nil {
		return err
	}
	u.Warn(result.Notes...)
	return u.Data(c.String("output"), result, exactTable(result))
}

// requireExact returns an error if a flag for `explain --exact` was given without it.
func requireExact(c *cli.Context) error {
	for _, flag := range exactFlags() {
		if name := flag.Names()[0]; name != "exact" && c.IsSet(name) {
			return problem.Invalidf("add --exact", "--%s needs --exact", name)
		}
	}
	return nil
}

func exactTable(r *decision.Result) string {
	var p printer
	p.outcome(r)
	p.scores(r)
	p.refusals(r)
	p.chosen(r.Chosen)
	return p.String()
}

func (p *printer) outcome(r *decision.Result) {
	scored, refused := 0, 0
	for _, n := range r.Nodes {
		if n.Score != nil {
			scored++
		}
		if len(n.Refused) > 0 {
			refused++
		}
	}
	pod := "pod " + r.Namespace + "/" + r.Pod
	switch {
	case r.Node == "":
		p.Line("%s fits on no node: %s", pod, oneLine(r.Message))
	case len(r.Evicted) > 0:
		p.Line("%s goes to node %s after the eviction of %s", pod, r.Node, strings.Join(r.Evicted, ", "))
	default:
		p.Line("%s goes to node %s", pod, r.Node)
	}
	if r.From != "" && r.From != r.Node {
		p.Line("it is on node %s now", r.From)
	}
	p.Line("scheduler %s %s: %s, %d refused, %d scored", r.Scheduler, r.Release, plural.Count(len(r.Nodes), "node"), refused,
		scored)
	if left := len(r.Nodes) - refused; scored == 0 && left > 0 && r.Node != "" && len(r.Evicted) == 0 {
		p.Line("nodes are not scored if only one is left")
	}
	if len(r.Tied) > 0 {
		p.Line("%d nodes have the best score, one of them is selected at random: %s", len(r.Tied), firstNames(r.Tied))
	}
}

func firstNames(names []string) string {
	if more := len(names) - mostBest; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostBest], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (p *printer) scores(r *decision.Result) {
	var best []decision.Node
	for _, n := range r.Nodes {
		if n.Score != nil && len(best) < mostBest {
			best = append(best, n)
		}
	}
	p.Head(len(best), "RANK", "NODE", "SCORE", "SCORES (WEIGHTED)")
	for i, n := range best {
		scores := joined(n.Scores, ", ", func(s decision.Score) string { return fmt.Sprintf("%s %d", s.By, s.Score) })
		p.Row(i+1, n.Name, *n.Score, scores)
	}
}

func (p *printer) refusals(r *decision.Result) {
	if len(r.Refusals) == 0 {
		return
	}
	p.Row()
	p.Row("REFUSED BY", "NODES", "ONLY BY IT", "REASON")
	for _, refusal := range r.Refusals {
		p.Row(refusal.By, refusal.Nodes, refusal.Only, orDash(oneLine(strings.Join(refusal.Reasons, "; "))))
	}
	refused := slices.DeleteFunc(slices.Clone(r.Nodes), func(n decision.Node) bool { return len(n.Refused) == 0 })
	p.Head(len(refused), "REFUSED NODE", "BY")
	for _, n := range first(refused) {
		p.Row(n.Name, strings.Join(n.Refused, ", "))
	}
	p.more(len(refused))
}

func (p *printer) chosen(c *decision.Chosen) {
	if c == nil {
		return
	}
	switch c.Outcome {
	case decision.Selected:
		p.Line("\nnode %s is selected", c.Node)
	case decision.Tied:
		p.Line("\nnode %s has the best score as well: the scheduler selects one at random", c.Node)
	case decision.Refused:
		p.Line("\nfor node %s to be selected, each of these has to accept it:", c.Node)
		for _, refusal := range c.Refusals {
			p.refusal(refusal, c.Fixes)
		}
		return
	case decision.Unscored:
		p.Line("\nnode %s was not scored", c.Node)
		return
	default:
		p.Line("\nnode %s lacks %s: %s has the best score", c.Node, plural.Count(int(c.Lacks), "point"), c.Best)
	}
	p.Head(len(c.Differences), "BY", "WEIGHT", c.Node, c.Best, "DIFFERENCE")
	for _, d := range c.Differences {
		p.Line("%s\t%d\t%d\t%d\t%+d", d.By, d.Weight, d.Score, d.Best, d.Score-d.Best)
	}
	p.changes(c)
}

func (p *printer) refusal(refusal decision.Refusal, fixes []decision.Fix) {
	computed := false
	for _, f := range fixes {
		if f.By == refusal.By {
			computed = true
			p.Line("- %s: %s: %s", f.By, oneLine(f.Text), oneLine(f.Fix))
		}
	}
	if !computed {
		p.Line("- %s: %s", refusal.By, cmp.Or(oneLine(strings.Join(refusal.Reasons, "; ")), "no reason given"))
	}
}

func (p *printer) changes(c *decision.Chosen) {
	if c.Outcome != decision.Lower && c.Outcome != decision.Tied {
		return
	}
	if len(c.Changes) == 0 {
		p.Line("\nno weight of one plugin alone makes %s win", c.Node)
		return
	}
	p.Line("\n%s would win with one of these:", c.Node)
	for _, change := range c.Changes {
		to := "weight " + strconv.FormatInt(change.To, 10)
		if change.To == 0 {
			to = "disabled under score"
		}
		p.Line("- %s: %s instead of weight %d", change.By, to, change.Weight)
	}
}
