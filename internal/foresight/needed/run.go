package needed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// Request describes the scheduler, the objects and the templates.
type Request struct {
	simulate.Input
	// Script reads the templates. It has no steps.
	simulate.Script
	// Templates are node names or files, and Limit is the largest number of nodes for each.
	Templates []string
	Limit     int
}

// Run returns the number of nodes that the pending pods need from each template, by simulations
// with different node numbers. The cluster is only read, and not at all with a file.
func Run(ctx context.Context, s *session.Session, r Request) (result *Result, err error) {
	in, err := r.Open(ctx, s, "needed")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	p := in.Programs
	run := func(ctx context.Context, sc scenario.Scenario) (*report.Report, error) {
		return in.Servers.Run(ctx, p, simulate.Options{Scenario: sc, Snapshot: in.Snapshot, Timeout: r.Timeout})
	}
	result = &Result{
		Release: p.Scheduler.Release.String(), Scheduler: p.Scheduler.Request.Name, Programs: p.Origins,
		Unknown: unknown(),
	}
	for _, template := range r.Templates {
		need, notes, err := Of(ctx, s, r.Script, template, r.Limit, run)
		if err != nil {
			return nil, err
		}
		result.Templates = append(result.Templates, *need)
		result.Notes = append(result.Notes, notes...)
	}
	slices.Sort(result.Notes)
	result.Notes = slices.Compact(result.Notes)
	return result, nil
}

func unknown() []string {
	return []string{
		"mixtures of templates: each one is tried alone",
		"whether a provider has such nodes, how soon they join, and what else runs on them: only the pods of DaemonSets of a " +
			"node that is the template are copied",
		"the decision of an autoscaler: it has limits, and fewer plugins than the scheduler (`pmk-sched check --autoscaler`)",
		"ties: the scheduler breaks them at random, so that one node more or less may be needed",
	}
}

// Of returns the number of nodes like one template that the pending pods need, and the
// simulations' notes. run runs a scenario.
func Of(
	ctx context.Context, s *session.Session, script simulate.Script, template string, limit int,
	run func(context.Context, scenario.Scenario) (*report.Report, error),
) (*Need, []string, error) {
	results := map[int]*report.Report{}
	try := func(nodes int) (*report.Report, error) {
		s.Note(fmt.Sprintf("%s: trying %d", template, nodes))
		script.Steps = []scenario.Step{{Scenario: "nodes", Add: []scenario.NodesToAdd{{Template: template, Count: nodes}}}}
		scenarios, err := script.Read(ctx)
		if err != nil {
			return nil, err
		}
		results[nodes], err = run(ctx, scenarios[0])
		return results[nodes], err
	}
	nodes, limited, err := fewestNodes(limit, try)
	if err != nil {
		return nil, nil, err
	}
	found := results[nodes]
	used := found.NewNodes()
	if used == 0 { // the pods fit on the nodes that are there, or not on new ones
		nodes = 0
	}
	return &Need{
		Template: template, Nodes: nodes, Placed: len(found.Placements), Used: used, Unplaced: found.Unplaced,
		Evicted: found.Evicted, Limited: limited, Simulations: len(results),
	}, found.Notes, nil
}
