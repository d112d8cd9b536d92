// Package upgrades compares a scheduler at two releases: tables for the releases, and simulations
// at both on the same snapshot.
package upgrades

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Result is the difference between a scheduler at two releases.
type Result struct {
	Scheduler string `json:"scheduler"`
	From      string `json:"from"`
	To        string `json:"to"`
	// Blocked is the reason why the scheduler cannot run at To, and Needs are remedies.
	Blocked string   `json:"blocked,omitempty"`
	Needs   []string `json:"needs,omitempty"`
	// Changes describe the configuration's conversion, Warnings its losses.
	Changes  []string `json:"changes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Placements are nil if the scheduler cannot run at To.
	Placements *Placements `json:"placements,omitempty"`
	Tables
	Notes    []string `json:"notes,omitempty"`
	Programs []string `json:"programs,omitempty"`
	// Unknown lists what the comparison does not know.
	Unknown []string `json:"unknown"`
}

// Tables are the differences that the releases' tables contain.
type Tables struct {
	// Gates are all kube-scheduler feature gates whose default or lock differs.
	Gates   []Gate   `json:"gates"`
	Plugins []Plugin `json:"plugins"`
	// Fixed are the known problems that the scheduler meets at From and not at To, and New those that
	// it meets at To only.
	Fixed []inspect.KnownProblem `json:"fixedProblems"`
	New   []inspect.KnownProblem `json:"newProblems"`
}

// Gate is a feature gate that differs: on, off, locked-on, locked-off, or "-" if the release does
// not have it.
type Gate struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// Scheduling is set if the gate changes the scheduler's decisions, or fields that it reads.
	Scheduling bool `json:"scheduling"`
	// Set is the value that the scheduler's flags set; nil if they do not.
	Set *bool `json:"set,omitempty"`
}

// Plugin is a plugin in a profile that differs: the extension points at which it runs, and its
// weight when it scores.
type Plugin struct {
	Profile string   `json:"profile"`
	Plugin  string   `json:"plugin"`
	Added   []string `json:"addedPoints,omitempty"`
	Removed []string `json:"removedPoints,omitempty"`
	// Weight and NewWeight are 0 if the plugin does not score.
	Weight    int `json:"weight,omitempty"`
	NewWeight int `json:"newWeight,omitempty"`
}

// Scheduler is a scheduler at a release.
type Scheduler struct {
	Name    string
	Release versions.Release
	// Configuration is rendered for the release.
	Configuration []byte
	// Gates are the feature gates that its flags set.
	Gates map[string]bool
}

// Worse reports whether the upgrade changes a placement, brings a known problem, or cannot run.
func (r *Result) Worse() bool {
	return r.Blocked != "" || len(r.New) > 0 || r.Placements != nil && len(r.Placements.Differences) > 0
}

// Compare compares two releases' tables for a scheduler.
func Compare(from, to *Scheduler) (*Tables, error) {
	t := &Tables{Gates: CompareGates(from.Release, to.Release, from.Gates), Plugins: []Plugin{}}
	var running [2][]profiles.Running
	var problems [2][]inspect.KnownProblem
	for i, s := range []*Scheduler{from, to} {
		var err error
		if running[i], err = profiles.RunningPlugins(s.Configuration, s.Release, s.Gates); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Release, err)
		}
		usage, err := profiles.Usage(s.Configuration, s.Release)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Release, err)
		}
		usage.Gates = s.Gates
		problems[i] = inspect.ProblemsOf(s.Name, s.Release, usage)
	}
	for _, a := range running[0] {
		for _, b := range running[1] {
			if a.Profile == b.Profile {
				t.Plugins = append(t.Plugins, comparePlugins(a, b)...)
			}
		}
	}
	t.Fixed, t.New = without(problems[0], problems[1]), without(problems[1], problems[0])
	return t, nil
}

// CompareGates returns the feature gates that differ between two releases. set are the gates that
// flags set.
func CompareGates(from, to versions.Release, set map[string]bool) []Gate {
	gates := []Gate{}
	for _, g := range versions.GateChanges(from, to, set) {
		gate := Gate{Name: g.Name, From: g.From.String(), To: g.To.String(), Scheduling: g.Scheduling}
		if value, ok := set[g.Name]; ok {
			gate.Set = &value
		}
		gates = append(gates, gate)
	}
	return gates
}

// without returns the problems in a list whose issue another list does not have.
func without(list, other []inspect.KnownProblem) []inspect.KnownProblem {
	return slices.DeleteFunc(slices.Clone(list), func(p inspect.KnownProblem) bool {
		return slices.ContainsFunc(other, func(o inspect.KnownProblem) bool { return o.Issue == p.Issue })
	})
}

// comparePlugins returns the plugins in a profile that differ, by name.
func comparePlugins(from, to profiles.Running) []Plugin {
	found := map[string]*Plugin{}
	at := func(name string) *Plugin {
		if found[name] == nil {
			found[name] = &Plugin{Profile: from.Profile, Plugin: name}
		}
		return found[name]
	}
	for point, plugins := range from.Points {
		for name, weight := range plugins {
			now, runs := to.Points[point][name]
			if !runs {
				at(name).Removed = append(at(name).Removed, point)
			}
			if weight != now {
				at(name).Weight, at(name).NewWeight = weight, now
			}
		}
	}
	for point, plugins := range to.Points {
		for name, weight := range plugins {
			if _, ran := from.Points[point][name]; !ran {
				at(name).Added = append(at(name).Added, point)
				at(name).NewWeight = max(at(name).NewWeight, weight)
			}
		}
	}
	var all []Plugin
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p := *found[name]
		slices.Sort(p.Added)
		slices.Sort(p.Removed)
		all = append(all, p)
	}
	return all
}
