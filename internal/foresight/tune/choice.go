package tune

import (
	"math"
	"slices"
	"strings"
)

// Choice is the point to use if only one objective counts. It is chosen on the snapshots of the
// search alone, so that the snapshots that were held out can prove it wrong.
type Choice struct {
	Objective string `json:"objective"`
	Point     string `json:"point"`
	// Figure is the point's, on the snapshots that were held out, or else on those of the search.
	// Preset is the best preset there, and PresetFigure its figure.
	Figure       float64 `json:"figure"`
	Preset       string  `json:"preset"`
	PresetFigure float64 `json:"presetFigure"`
	// NoWorse is set if no preset is better.
	NoWorse bool `json:"noWorse"`
}

// Choose returns the name of the trial to use for each objective: the best one of the given trials,
// which come first, unless a trial of the front is better by more than one standard error of the
// difference over the snapshots. The search tries many candidates, and the one that is best by
// chance is not the best one of other snapshots; the few given ones are not selected.
func Choose(objectives []Objective, trials []Trial, given int) []string {
	all := make([]Figures, len(trials))
	for i := range trials {
		all[i] = trials[i].Figures
	}
	front := Front(objectives, all)
	var names []string
	for o := range objectives {
		cost := func(i int) float64 { return costs(objectives, all[i])[o] }
		chosen := -1
		for i := range given {
			if all[i] != nil && (chosen < 0 || cost(i) < cost(chosen)) {
				chosen = i
			}
		}
		safe := chosen
		for _, i := range front {
			if safe >= 0 && i >= given && cost(i) < cost(chosen) && surpasses(objectives, o, trials[i], trials[safe]) {
				chosen = i
			}
		}
		if chosen >= 0 {
			names = append(names, trials[chosen].Name)
		}
	}
	return names
}

// surpasses reports whether a trial is better than another one by more than one standard error of
// the mean difference.
func surpasses(objectives []Objective, o int, a, b Trial) bool {
	n := float64(len(a.BySnapshot))
	mean, squares := 0.0, 0.0
	for s := range a.BySnapshot {
		d := costs(objectives, b.BySnapshot[s])[o] - costs(objectives, a.BySnapshot[s])[o]
		mean, squares = mean+d/n, squares+d*d
	}
	variance := max(0, squares-n*mean*mean) / max(1, n-1)
	return mean > math.Sqrt(variance/n)
}

// Compare compares the chosen points with the presets, whose names begin with [Preset]. chosen are
// the names of points by objective.
func Compare(objectives []Objective, points []Point, chosen []string) []Choice {
	all := []Choice{}
	heldOut := slices.ContainsFunc(points, func(p Point) bool { return p.HeldOut != nil })
	figures := func(p Point) Figures {
		if heldOut {
			return p.HeldOut
		}
		return p.Figures
	}
	for i, name := range chosen {
		at := slices.IndexFunc(points, func(p Point) bool { return p.Name == name })
		c := Choice{Objective: objectives[i].Name, Point: name, PresetFigure: math.Inf(1)}
		for _, p := range points {
			f := figures(p)
			if f == nil || !strings.HasPrefix(p.Name, Preset) { // nil: its simulation failed
				continue
			}
			if cost := costs(objectives, f)[i]; cost < c.PresetFigure {
				c.Preset, c.PresetFigure = p.Name, cost
			}
		}
		if at < 0 || figures(points[at]) == nil || c.Preset == "" {
			continue
		}
		c.Figure = costs(objectives, figures(points[at]))[i]
		c.NoWorse = c.Figure <= c.PresetFigure+1e-9
		if objectives[i].Higher {
			c.Figure, c.PresetFigure = -c.Figure, -c.PresetFigure
		}
		all = append(all, c)
	}
	return all
}
