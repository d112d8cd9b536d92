package tune

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Choice is the point to use if only one objective counts. It is chosen on the snapshots of the
// search alone, so that the snapshots that were held out can prove it wrong.
type Choice struct {
	Objective string `json:"objective"`
	Point     string `json:"point"`
	// Figure is the point's, on the snapshots that were held out, or else on the search's snapshots.
	// Preset is the best preset there, and PresetFigure its figure.
	Figure       float64 `json:"figure"`
	Preset       string  `json:"preset"`
	PresetFigure float64 `json:"presetFigure"`
	// NoWorse is set if no preset is better, and WithinError if one is, but none by more than one
	// standard error of the difference over the snapshots that were held out.
	NoWorse     bool `json:"noWorse"`
	WithinError bool `json:"withinError"`
}

// Verdict is NoWorse and WithinError in words.
func (c Choice) Verdict() string {
	switch {
	case c.NoWorse:
		return "yes"
	case c.WithinError:
		return "within error"
	}
	return "no"
}

// choose returns the name of the trial to use for each objective: the best among the given trials,
// which come first, unless a trial in the front is better by more than one standard error of the
// difference over the snapshots. The search tries many candidates, and the one that is best by
// chance is not the best for other snapshots; the few given ones are not selected.
func choose(objectives []Objective, trials []Trial, given int) []string {
	all := make([]Figures, len(trials))
	for i := range trials {
		all[i] = trials[i].Figures
	}
	front := front(objectives, all)
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
			if safe >= 0 && i >= given && cost(i) < cost(chosen) &&
				surpasses(objectives, o, trials[i].BySnapshot, trials[safe].BySnapshot) {
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
// the mean difference. a and b are their figures by snapshot.
func surpasses(objectives []Objective, o int, a, b []Figures) bool {
	n := float64(len(a))
	mean, squares := 0.0, 0.0
	for s := range a {
		d := costs(objectives, b[s])[o] - costs(objectives, a[s])[o]
		mean, squares = mean+d/n, squares+d*d
	}
	variance := max(0, squares-n*mean*mean) / max(1, n-1)
	return mean > math.Sqrt(variance/n)
}

// compareChoices compares the chosen points with the presets, whose names begin with [Preset].
// chosen are the points' names by objective.
func compareChoices(objectives []Objective, points []Point, chosen []string) []Choice {
	all := []Choice{}
	heldOut := slices.ContainsFunc(points, func(p Point) bool { return p.HeldOut != nil })
	figures := func(p Point) Figures {
		if heldOut {
			return p.HeldOut
		}
		return p.Figures
	}
	failed := func(p Point) bool { return figures(p) == nil }
	presets := slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		return failed(p) || !strings.HasPrefix(p.Name, Preset)
	})
	for i, name := range chosen {
		at := slices.IndexFunc(points, func(p Point) bool { return p.Name == name })
		if at < 0 || failed(points[at]) || len(presets) == 0 {
			continue
		}
		point := points[at]
		cost := func(p Point) float64 { return costs(objectives, figures(p))[i] }
		best := slices.MinFunc(presets, func(a, b Point) int { return cmp.Compare(cost(a), cost(b)) })
		c := Choice{Objective: objectives[i].Name, Point: name, Figure: figures(point)[i], Preset: best.Name,
			PresetFigure: figures(best)[i], NoWorse: cost(point) <= cost(best)+1e-9}
		c.WithinError = heldOut && !c.NoWorse && !slices.ContainsFunc(presets, func(p Point) bool {
			return surpasses(objectives, i, p.HeldOutBySnapshot, point.HeldOutBySnapshot)
		})
		all = append(all, c)
	}
	return all
}
