package tune

import (
	"cmp"
	"slices"

	"github.com/pmk-sched/pmk-sched/profiles"
)

const (
	// Today is the name of the given candidate with the current configuration.
	Today = "today"
	// Preset begins the names of the given candidates that are presets.
	Preset = "preset "
)

// Result is a search's result. It does not depend on the machine's speed.
type Result struct {
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	Scenario  string `json:"scenario"`
	Seed      uint64 `json:"seed"`
	// Snapshots are the files for the search, HeldOut the files that it did not see.
	Snapshots  []string    `json:"snapshots"`
	HeldOut    []string    `json:"heldOut"`
	Objectives []Objective `json:"objectives"`
	Settings   []Setting   `json:"settings"`
	// Points are the front, and then the other given candidates.
	Points []Point `json:"points"`
	// Choices are the points to use for one objective.
	Choices []Choice `json:"choices"`
	// Trials are all candidates in the search's order.
	Trials []Trial `json:"trials"`
	// Programs are the programs that ran, Notes the simulations' deviations, and Unknown the result's
	// limits.
	Programs []string `json:"programs"`
	Notes    []string `json:"notes"`
	Unknown  []string `json:"unknown"`
}

// Point is a candidate with its configuration.
type Point struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	// Front is set if no candidate is better on the search's snapshots, HeldOutFront if no other point
	// is better on the snapshots that were held out.
	Front        bool `json:"front"`
	HeldOutFront bool `json:"heldOutFront"`
	// Figures are means over the search's snapshots, HeldOut over the snapshots that were held out:
	// nil if there are none. HeldOutBySnapshot are the figures for each held-out snapshot.
	Figures           Figures   `json:"figures"`
	HeldOut           Figures   `json:"heldOut"`
	HeldOutBySnapshot []Figures `json:"heldOutBySnapshot,omitempty"`
	// Changes are the settings that differ from today's configuration.
	Changes []string `json:"changes"`
	// Configuration is a KubeSchedulerConfiguration, Spec a pmk-sched.yaml with it.
	Configuration string           `json:"configuration"`
	Spec          string           `json:"spec"`
	EKS           profiles.Managed `json:"eks"`
	AKS           profiles.Managed `json:"aks"`
}

// newPoints returns the trials' front, ordered by the first objective, and then the given
// candidates outside it.
func newPoints(objectives []Objective, trials []Trial, given int) []Point {
	all := make([]Figures, len(trials))
	for i := range trials {
		all[i] = trials[i].Figures
	}
	front := front(objectives, all)
	slices.SortStableFunc(front, func(a, b int) int {
		return cmp.Compare(costs(objectives, all[a])[0], costs(objectives, all[b])[0])
	})
	var points []Point
	add := func(i int, onFront bool) {
		t := trials[i]
		points = append(points, Point{Name: t.Name, From: t.From, Front: onFront, Figures: t.Figures})
	}
	for _, i := range front {
		add(i, true)
	}
	for i := range given {
		if !slices.Contains(front, i) && trials[i].Figures != nil {
			add(i, false)
		}
	}
	return points
}

// markHeldOut marks the points that no other point beats on the snapshots that were held out.
func markHeldOut(objectives []Objective, points []Point) {
	for i := range points {
		points[i].HeldOutFront = points[i].HeldOut != nil && !slices.ContainsFunc(points, func(p Point) bool {
			return p.HeldOut != nil && dominates(objectives, p.HeldOut, points[i].HeldOut)
		})
	}
}
