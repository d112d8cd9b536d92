// Package report has the result of a simulation: where pods went, which did not fit and why, and how much of the nodes is requested before and
// after.
//
// The package does no I/O.
package report

import (
	"cmp"
	"slices"
)

// Report is the result of one scenario.
type Report struct {
	Scenario string `json:"scenario"`
	// Release is that of the scheduler, such as v1.24.3; Scheduler is its name.
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Placements are the pods that were scheduled, Unplaced those that were not, and Evicted the running pods that made room for others. All are
	// ordered by namespace and name.
	Placements []Placement `json:"placements"`
	Unplaced   []Unplaced  `json:"unplaced"`
	Evicted    []Placement `json:"evicted"`
	Summary    Summary     `json:"summary"`
	// Notes are deviations of the simulation from the cluster.
	Notes []string `json:"notes,omitempty"`
}

// Placement is a pod and its node.
type Placement struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// From is the node that a pod which is scheduled again had before.
	From string `json:"from,omitempty"`
}

// Unplaced is a pod without a node, and the reason that the scheduler gives.
type Unplaced struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// From is the node that a pod which is scheduled again had before.
	From   string `json:"from,omitempty"`
	Reason string `json:"reason"`
}

// Summary are the numbers of a simulation.
type Summary struct {
	Nodes int `json:"nodes"`
	// Pods are those on nodes before, Scheduled those that the scheduler had to place.
	Pods      int `json:"pods"`
	Scheduled int `json:"scheduled"`
	Placed    int `json:"placed"`
	// Moved are those of Placed that had another node before.
	Moved    int `json:"moved"`
	Unplaced int `json:"unplaced"`
	Evicted  int `json:"evicted"`
	// Utilization is how much of the nodes pods request, by resource.
	Utilization []Utilization `json:"utilization"`
	// LoadSeconds and ScheduleSeconds are how long the parts of the simulation took.
	LoadSeconds     float64 `json:"loadSeconds"`
	ScheduleSeconds float64 `json:"scheduleSeconds"`
}

// Utilization is how much of a resource of all nodes pods request.
type Utilization struct {
	Resource    string `json:"resource"`
	Allocatable string `json:"allocatable"`
	// Before and After are parts of Allocatable, from 0 to 1.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Finish orders the lists and counts them. Lists are never null in JSON.
func (r *Report) Finish() {
	byName := func(a, b Placement) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	r.Placements, r.Unplaced, r.Evicted = orEmpty(r.Placements), orEmpty(r.Unplaced), orEmpty(r.Evicted)
	slices.SortFunc(r.Placements, byName)
	slices.SortFunc(r.Evicted, byName)
	slices.SortFunc(r.Unplaced, func(a, b Unplaced) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	s := &r.Summary
	s.Placed, s.Unplaced, s.Evicted = len(r.Placements), len(r.Unplaced), len(r.Evicted)
	s.Scheduled = s.Placed + s.Unplaced
	for _, p := range r.Placements {
		if p.From != "" && p.From != p.Node {
			s.Moved++
		}
	}
	s.Utilization = orEmpty(s.Utilization)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
