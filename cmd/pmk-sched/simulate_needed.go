package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/needed"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

func simulateUntilFits(c *cli.Context, u *ui) error {
	if err := exclude(c, "", "until-fits", "add", "against", "report", "price"); err != nil {
		return err
	}
	r := needed.Request{Script: simulate.Script{Stdin: u.In}, Templates: c.StringSlice("template"),
		Limit: c.Int("limit")}
	if len(r.Templates) == 0 {
		return problem.Invalidf(command.SeeHelp(c), "--until-fits needs --template")
	}
	var err error
	if r.Input, err = readInput(c, u); err != nil {
		return err
	}
	result, err := needed.Run(c.Context, u.Session, r)
	if err != nil {
		return err
	}
	return u.Data(c.String("output"), result, neededTable(result))
}

func neededTable(r *needed.Result) string {
	var p printer
	p.Line("new nodes that the pending pods need, by scheduler %s %s\n", r.Scheduler, r.Release)
	p.Row("TEMPLATE", "NODES", "PODS PLACED", "UNPLACED", "EVICTED", "SIMULATIONS")
	for _, t := range r.Templates {
		p.Row(t.Template, t.Nodes, t.Placed, len(t.Unplaced), len(t.Evicted), t.Simulations)
	}
	for _, t := range r.Templates {
		if t.Limited {
			p.Line("\n%s: more nodes than --limit may place more pods", t.Template)
		}
		if len(t.Unplaced) > 0 {
			p.Line("\nwith %s:", t.Template)
			p.reasons(t.Unplaced)
		}
	}
	p.notes(r.Notes)
	p.unknown(r.Unknown)
	return p.String()
}

// notes prints notes on an answer.
func (p *printer) notes(list []string) {
	for _, note := range list {
		p.Line("\nnote: %s", note)
	}
}

// unknown prints facts that an answer does not know.
func (p *printer) unknown(facts []string) {
	p.Line("\nnot known:")
	for _, fact := range facts {
		p.Line("- %s", fact)
	}
}
