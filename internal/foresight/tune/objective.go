// Package tune searches a scheduler's settings for several objectives at once, and keeps the
// settings that no others beat in all objectives: the Pareto front.
//
// A run evaluates given candidates first, today's configuration and the presets. The front
// therefore has, for each objective, a candidate at least as good as each given one. One half of
// the remaining trials samples all settings evenly: a Kronecker sequence with the generalized
// golden ratio (low discrepancy in every number of dimensions), shifted by the seed. The second
// half changes one or two settings in the front's candidates, the least crowded ones first. Each
// candidate can be explained by the candidate that it comes from and by the settings that differ.
//
// The search is this package's own: gonum's optimize and other maintained Go libraries minimize one
// function over real numbers, whereas settings are choices from short lists, objectives are
// several, and a run has tens of trials and not thousands.
//
// The same seed with the same figures gives the same candidates.
package tune

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Objective is a figure from a simulation to improve.
type Objective struct {
	Name string `json:"name"`
	// Higher is set if more is better.
	Higher bool `json:"higherIsBetter"`
	// Meaning describes the figure.
	Meaning string `json:"meaning"`
}

// Objective names.
const (
	EmptyNodes = "empty-nodes"
	Spread     = "spread"
	Zones      = "zones"
	Moves      = "moves"
	Cost       = "cost"
	Unplaced   = "unplaced"
)

// Objectives returns all objectives.
func Objectives() []Objective {
	return []Objective{
		{EmptyNodes, true, "nodes with only pods of DaemonSets and static pods"},
		{Spread, false, "mean of the coefficients of variation of requested CPU and memory over the nodes: 0 is even"},
		{Zones, false, "workloads with several pods, all of them in one zone"},
		{Moves, false, "pods that get another node, and pods that are evicted"},
		{Cost, false, "cost of the nodes that are not empty, by --price"},
		{Unplaced, false, "pods without a node"},
	}
}

// ParseObjectives reads names, separated by commas.
func ParseObjectives(text string) ([]Objective, error) {
	var found []Objective
	all := Objectives()
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(all, func(o Objective) bool { return o.Name == name })
		if i < 0 {
			var names []string
			for _, o := range all {
				names = append(names, o.Name)
			}
			return nil, fmt.Errorf("%q: must be one or several of %s", name, strings.Join(names, ", "))
		}
		if !slices.Contains(found, all[i]) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// Figures are the objectives' values, in their order.
type Figures []float64

// figuresOf returns a simulation's figures.
func figuresOf(objectives []Objective, r *report.Report) Figures {
	f := make(Figures, len(objectives))
	for i, o := range objectives {
		f[i] = measure(o.Name, &r.Summary)
	}
	return f
}

func measure(name string, s *report.Summary) float64 {
	after := s.After
	if after == nil {
		after = &report.Distribution{}
	}
	switch name {
	case EmptyNodes:
		return float64(len(after.EmptyNodes))
	case Spread:
		sum, n := 0.0, 0.0
		for _, b := range after.Resources {
			if b.Resource == "cpu" || b.Resource == "memory" {
				sum, n = sum+b.CoefficientOfVariation, n+1
			}
		}
		return sum / max(n, 1)
	case Zones:
		return float64(after.OneZone)
	case Moves:
		return float64(s.Moved + s.Evicted)
	case Cost:
		if after.Cost == nil {
			return 0
		}
		return after.Cost.Nodes - after.Cost.EmptyNodes
	}
	return float64(s.Unplaced)
}

// mean returns the mean figures for several snapshots.
func mean(all []Figures) Figures {
	mean := make(Figures, len(all[0]))
	for _, f := range all {
		for i := range f {
			mean[i] += f[i] / float64(len(all))
		}
	}
	return mean
}

// Format formats a figure with at most three digits after the point.
func Format(value float64) string {
	return strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
}
