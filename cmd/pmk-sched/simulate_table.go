package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// simulationTable returns a summary that fits a terminal.
func simulationTable(r *report.Report) string {
	var p printer
	for i, step := range r.Steps {
		s := step.Summary
		p.Line("step %d, %s: %d of %s placed, %d moved, %d unplaced, %d evicted",
			i+1, step.Scenario, s.Placed, plural.Count(s.Scheduled, "pod"), s.Moved, s.Unplaced, s.Evicted)
		if removed := step.Removed; removed != nil {
			p.Line("step %d, when the drained nodes are removed: %d of %s placed", i+1, len(removed.Placements),
				plural.Count(len(removed.Placements)+len(removed.Unplaced), "pod"))
		}
	}
	s := r.Summary
	p.Line("%d of %s placed on %s by %s %s, %d moved, %d unplaced, %d evicted",
		s.Placed, plural.Count(s.Scheduled, "pod"), plural.Count(s.Nodes, "node"), r.Scheduler, r.Release, s.Moved,
		s.Unplaced, s.Evicted)
	p.resources(s)
	p.devices(r.Devices)
	p.capacity(r.Capacity)
	p.comparison(r.Comparison)
	p.placements(r.Placements, r.Unplaced)
	p.removed(r.Removed)
	p.notes(r.Notes)
	p.Row()
	for _, line := range r.Verdict() {
		p.Line("%s", line)
	}
	return p.String()
}

// removed prints where drained nodes' pods go when the nodes are removed.
func (p *printer) removed(r *report.Removed) {
	if r == nil {
		return
	}
	p.Line("\nwhen the drained nodes are removed: %d of %s placed, %d evicted", len(r.Placements),
		plural.Count(len(r.Placements)+len(r.Unplaced), "pod"), len(r.Evicted))
	p.placements(r.Placements, r.Unplaced)
}

func (p *printer) placements(placed []report.Placement, unplaced []report.Unplaced) {
	p.Head(len(placed), "POD", "FROM", "NODE")
	for _, placement := range first(placed) {
		p.Row(placement.Namespace+"/"+placement.Name, orDash(placement.From), placement.Node)
	}
	p.more(len(placed))
	p.reasons(unplaced)
}

func (p *printer) resources(s report.Summary) {
	if s.Before == nil || s.After == nil {
		return
	}
	p.Row()
	p.Row("RESOURCE", "ALLOCATABLE", "BEFORE", "AFTER", "VARIATION", "LARGEST POD", "STRANDED")
	for i, b := range s.Balances() {
		u := s.Utilization[i]
		p.Line("%s\t%s\t%.1f %%\t%.1f %%\t%.2f → %.2f\t%s → %s\t%s → %s", u.Resource, amountChange(u), 100*u.Before,
			100*u.After,
			b.Before.CoefficientOfVariation, b.After.CoefficientOfVariation, b.Before.LargestFree, b.After.LargestFree,
			b.Before.Stranded, b.After.Stranded)
	}
	p.Line("\nempty nodes: %d → %d", len(s.Before.EmptyNodes), len(s.After.EmptyNodes))
	p.cost(s.Before.Cost, s.After.Cost)
	zones := s.Zones()
	p.Head(len(zones), "ZONE", "NODES", "PODS", "CPU")
	for _, z := range zones {
		p.Line("%s\t%d → %d\t%d → %d\t%.1f %% → %.1f %%", z.Name,
			z.Before.Nodes, z.After.Nodes, z.Before.Pods, z.After.Pods, 100*z.Before.CPU, 100*z.After.CPU)
	}
}

// devices prints the pools whose devices changed first.
func (p *printer) devices(pools []report.DevicePool) {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b report.DevicePool) int { return changedFirst(a) - changedFirst(b) })
	p.Head(len(pools), "DRIVER", "POOL", "NODE", "DEVICES", "ALLOCATED", "FREE", "SHARED CAPACITY")
	for _, d := range first(pools) {
		p.Line("%s\t%s\t%s\t%d\t%d → %d\t%d → %d\t%s", d.Driver, d.Pool, orDash(d.Node), d.After.Devices,
			d.Before.Allocated, d.After.Allocated, d.Before.Free, d.After.Free, orDash(d.SharedCapacity()))
	}
	p.more(len(pools))
}

func changedFirst(d report.DevicePool) int {
	if d.Before.Allocated == d.After.Allocated && d.Before.Free == d.After.Free {
		return 1
	}
	return 0
}

func (p *printer) cost(before, after *report.Cost) {
	if before == nil || after == nil {
		return
	}
	unpriced := ""
	if after.Unpriced > 0 {
		unpriced = fmt.Sprintf("; %d without a price", after.Unpriced)
	}
	price := report.FormatPrice
	p.Line("cost: of all nodes %s → %s, of empty nodes %s → %s%s",
		price(before.Nodes), price(after.Nodes), price(before.EmptyNodes), price(after.EmptyNodes), unpriced)
	types := report.CompareCosts(before, after)
	p.Head(len(types), "NODE TYPE", "PRICE", "NODES", "EMPTY")
	for _, t := range types {
		p.Line("%s\t%s\t%d → %d\t%d → %d", t.Type, price(t.Price),
			t.Before.Nodes, t.After.Nodes, t.Before.EmptyNodes, t.After.EmptyNodes)
	}
}

// amountChange returns the nodes' allocatable amount, and the amount afterwards if it differs.
func amountChange(u report.Utilization) string {
	if u.AllocatableAfter == "" {
		return u.Allocatable
	}
	return u.Allocatable + " → " + u.AllocatableAfter
}

func (p *printer) capacity(c *report.Capacity) {
	if c == nil {
		return
	}
	copies := plural.Phrase(c.Copies, "copy fits", "copies fit")
	pods := plural.Count(c.Copies*c.PodsPerCopy, "pod")
	switch {
	case c.Limited:
		p.Line("\nat least %s (%s): none was refused", copies, pods)
	default:
		p.Line("\n%s (%s); then %s/%s does not: %s", copies, pods, c.Stop.Namespace, c.Stop.Name,
			c.Stop.Reason)
	}
}

func (p *printer) comparison(c *report.Comparison) {
	if c == nil {
		return
	}
	p.Line("\ncompared with %s (%s %s): %s placed the same, %d differently; %s between two runs of it",
		c.Against, c.Scheduler, c.Release, plural.Phrase(c.Same, "pod is", "pods are"), len(c.Differences),
		plural.Phrase(len(c.Noise), "differs", "differ"))
	p.runs(c)
	p.Head(len(c.Differences), "DIFFERENT POD", "NODE", "NODE BY "+c.Against)
	for _, d := range first(c.Differences) {
		p.Row(d.Namespace+"/"+d.Name, orDash(d.Node), orDash(d.Baseline))
	}
	p.more(len(c.Differences))
}

// runs prints the figures of both runs of the baseline.
func (p *printer) runs(c *report.Comparison) {
	p.Head(1, "RUN OF "+c.Against, "PLACED", "EVICTED", "EMPTY NODES", "COST OF EMPTY NODES")
	for i, s := range []report.Summary{c.Baseline, c.Repeated} {
		empty, cost := s.Empty()
		p.Row(i+1, s.Placed, s.Evicted, orDash(empty), orDash(cost))
	}
}

// reasons prints why pods have no node, the most frequent reason first.
func (p *printer) reasons(unplaced []report.Unplaced) {
	count, example := map[string]int{}, map[string]string{}
	for _, u := range unplaced {
		if count[u.Reason]++; example[u.Reason] == "" {
			example[u.Reason] = u.Namespace + "/" + u.Name
		}
	}
	reasons := slices.SortedFunc(maps.Keys(count),
		func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	p.Head(len(reasons), "UNPLACED", "FOR EXAMPLE", "REASON")
	for _, reason := range first(reasons) {
		p.Row(count[reason], example[reason], reason)
	}
	p.more(len(reasons))
}
