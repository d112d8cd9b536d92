// Package page writes a simulation's result as one HTML file, which needs no other file and no
// network.
//
// The package does no I/O.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

//go:embed page.html
var text string

const (
	// mostBars is up to how many nodes each has a bar. A heat map shows more.
	mostBars = 500
	// mostRows limits the pods in each list.
	mostRows = 1000
	// mostPods limits the pods that the charts can show.
	mostPods = 30_000
)

// view is the input for the template.
type view struct {
	*report.Report
	Title     string
	Large     bool // a heat map instead of bars
	Charts    []chart
	Balances  []report.BalanceChange
	Zones     []report.ZoneChange
	Types     []report.TypeChange
	Data      data
	Lists     []list
	Namespace []string
	Hidden    int // pods that the charts do not show
	Runs      []compared
}

// compared is a row of the comparison: the figures of one run.
type compared struct {
	Name string
	report.Summary
	EmptyNodes, Cost string
}

// newRuns returns the run of the scheduler and both runs of the baseline.
func newRuns(r *report.Report, c *report.Comparison) []compared {
	all := []compared{{Name: r.Scheduler + " " + r.Release, Summary: r.Summary},
		{Name: c.Against + ", first run", Summary: c.Baseline}, {Name: c.Against + ", second run", Summary: c.Repeated}}
	for i := range all {
		all[i].EmptyNodes, all[i].Cost = all[i].Empty()
	}
	return all
}

// list is a table of pods or devices.
type list struct {
	ID, Title string
	Columns   []string
	Rows      [][]string
	More      int
}

// Write writes the page for a result.
func Write(w io.Writer, r *report.Report) error {
	t, err := template.New("page").Funcs(template.FuncMap{"percent": percent, "decimal": decimal,
		"price": report.FormatPrice, "count": plural.Count}).Parse(text)
	if err != nil {
		return fmt.Errorf("read template of the report: %w", err)
	}
	before, after := r.State()
	v := newView(r, before, after)
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func decimal(number float64) string { return fmt.Sprintf("%.3f", number) }

func newView(r *report.Report, before, after *report.Usage) view {
	d, hidden := newData(before, after)
	v := view{
		Report: r, Title: "simulate " + r.Scenario, Data: d, Hidden: hidden, Large: len(d.Nodes) > mostBars,
		Lists: lists(r), Namespace: slices.Clone(d.Namespaces),
	}
	slices.Sort(v.Namespace)
	if r.Comparison != nil {
		v.Runs = newRuns(r, r.Comparison)
	}
	for i := range d.Resources {
		v.Charts = append(v.Charts, newChart(d, i, before, after, v.Large))
	}
	if r.Summary.Before == nil || r.Summary.After == nil {
		return v
	}
	v.Balances, v.Zones = r.Summary.Balances(), r.Summary.Zones()
	if before, after := r.Summary.Before.Cost, r.Summary.After.Cost; before != nil && after != nil {
		v.Types = report.CompareCosts(before, after)
	}
	return v
}

// lists returns the pod and device tables that the result has.
func lists(r *report.Report) []list {
	moved := list{ID: "moved", Title: "Moved pods", Columns: []string{"Pod", "From", "To"}}
	placed := list{ID: "placed", Title: "Placed pods", Columns: []string{"Pod", "Node"}}
	unplaced := list{ID: "unplaced", Title: "Pods without a node", Columns: []string{"Pod", "Before", "Reason"}}
	evicted := list{ID: "evicted", Title: "Evicted pods", Columns: []string{"Pod", "Node"}}
	for _, p := range r.Placements {
		switch {
		case p.From == "":
			placed.add(p.Namespace+"/"+p.Name, p.Node)
		case p.From != p.Node:
			moved.add(p.Namespace+"/"+p.Name, p.From, p.Node)
		}
	}
	for _, u := range r.Unplaced {
		unplaced.add(u.Namespace+"/"+u.Name, u.From, u.Reason)
	}
	for _, e := range r.Evicted {
		evicted.add(e.Namespace+"/"+e.Name, e.Node)
	}
	all := []list{unplaced, evicted, moved, placed, deviceList(r.Devices)}
	if c := r.Comparison; c != nil {
		differences := list{ID: "differences", Title: "Pods that " + c.Against + " places differently",
			Columns: []string{"Pod", "Node", c.Against}}
		for _, d := range c.Differences {
			differences.add(d.Namespace+"/"+d.Name, d.Node, d.Baseline)
		}
		tied := list{ID: "tied", Title: "Tied pods: two runs of " + c.Against + " differ",
			Columns: []string{"Pod", "Node", "First run", "Second run"}}
		for _, d := range c.Noise {
			tied.add(d.Namespace+"/"+d.Name, d.Node, d.Baseline, d.Repeated)
		}
		all = append([]list{differences, tied}, all...)
	}
	return slices.DeleteFunc(all, func(l list) bool { return len(l.Rows) == 0 })
}

// deviceList returns the device table.
func deviceList(pools []report.DevicePool) list {
	devices := list{ID: "devices", Title: "Device pools",
		Columns: []string{"Driver", "Pool", "Node", "Devices", "Allocated", "Free", "Shared capacity"}}
	change := func(before, after int) string { return fmt.Sprintf("%d → %d", before, after) }
	for _, d := range pools {
		devices.add(d.Driver, d.Pool, d.Node, strconv.Itoa(d.After.Devices),
			change(d.Before.Allocated, d.After.Allocated), change(d.Before.Free, d.After.Free), d.SharedCapacity())
	}
	return devices
}

// Total returns the number of pods.
func (l list) Total() int { return len(l.Rows) + l.More }

// add adds a row, or counts it if there are many.
func (l *list) add(cells ...string) {
	if len(l.Rows) == mostRows {
		l.More++
		return
	}
	l.Rows = append(l.Rows, cells)
}
