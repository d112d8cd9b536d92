// Package report contains a simulation's result: the pods' nodes, the pods that did not fit and
// why, and the requested part of the nodes before and after.
//
// The package does no I/O.
package report

import (
	"cmp"
	"slices"
)

// Report is one scenario's result.
type Report struct {
	Scenario string `json:"scenario"`
	// Release is the scheduler's release, such as v1.24.3. Scheduler is its name.
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Placements are the pods that were scheduled, Unplaced the pods that were not, and Evicted the
	// running pods that made room for others. All are ordered by namespace and name.
	Placements []Placement `json:"placements"`
	Unplaced   []Unplaced  `json:"unplaced"`
	Evicted    []Placement `json:"evicted"`
	Summary    Summary     `json:"summary"`
	// Devices are the devices of dynamic resource allocation.
	Devices []DevicePool `json:"devices,omitempty"`
	// Capacity is the number of added workload copies that fit.
	Capacity *Capacity `json:"capacity,omitempty"`
	// Removed are the placements for pods from drained nodes once the nodes are removed, if some had
	// no node before: a node that is cordoned still counts when pods are spread over nodes.
	Removed *Removed `json:"removed,omitempty"`
	// Comparison is the difference from a second scheduler.
	Comparison *Comparison `json:"comparison,omitempty"`
	// Steps are the results of a scenario with several steps. The lists above then describe all steps
	// together.
	Steps []*Report `json:"steps,omitempty"`
	// Programs are the programs that ran: their versions, origins and digests.
	Programs []string `json:"programs,omitempty"`
	// Notes are the simulation's deviations from the cluster.
	Notes []string `json:"notes,omitempty"`

	before, after *Usage
}

// Measure sets the figures for the states before and after the simulation, and notes requests that
// are probably a mistake.
func (r *Report) Measure(before, after *Usage) {
	r.Notes = append(r.Notes, after.odd.notes()...)
	r.compare(before, after)
}

func (r *Report) compare(before, after *Usage) {
	r.before, r.after = before, after
	r.Devices = CompareDevices(&before.Devices, &after.Devices)
	resources := Resources(before, after)
	r.Summary.Utilization = Compare(before, after)
	r.Summary.Before, r.Summary.After = Distribute(before, resources), Distribute(after, resources)
}

// State returns the nodes with their pods before and after the simulation.
func (r *Report) State() (before, after *Usage) {
	if r.before == nil {
		return &Usage{}, &Usage{}
	}
	return r.before, r.after
}

// Placement is a pod and its node.
type Placement struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// From is the node that a pod which is scheduled again had before.
	From string `json:"from,omitempty"`
	// By is the namespace and name of the pod that evicted this one, if the scheduler reported it.
	By string `json:"by,omitempty"`
}

// Removed are the pods from removed nodes: with a node, without one, and the pods that made room.
type Removed struct {
	Placements []Placement `json:"placements"`
	Unplaced   []Unplaced  `json:"unplaced"`
	Evicted    []Placement `json:"evicted"`
}

// Evicted is the reason for a pod that was placed and then made room for another.
const Evicted = "evicted for a pod of higher priority"

// Unplaced is a pod without a node, and the reason that the scheduler gives.
type Unplaced struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// From is the node that a pod which is scheduled again had before.
	From   string `json:"from,omitempty"`
	Reason string `json:"reason"`
	// By is the namespace and name of the pod that evicted this one, if the scheduler reported it.
	By string `json:"by,omitempty"`
}

// Capacity is the number of workload copies that fit, one after the other, and the reason why the
// next copy does not fit.
type Capacity struct {
	// Copies is the number of copies whose pods all have a node. More is the number that were tried in
	// addition to the requested copies.
	Copies      int `json:"copies"`
	More        int `json:"more"`
	PodsPerCopy int `json:"podsPerCopy"`
	// Limited is set if no pod was refused: more copies may fit.
	Limited bool `json:"limited"`
	// Stop is the first pod that did not fit.
	Stop *Unplaced `json:"stop,omitempty"`
}

// Summary are a simulation's numbers.
type Summary struct {
	Nodes int `json:"nodes"`
	// Pods is the number of pods that were on nodes before, Scheduled the number that the scheduler
	// had to place.
	Pods      int `json:"pods"`
	Scheduled int `json:"scheduled"`
	Placed    int `json:"placed"`
	// Moved is the number of placed pods that had another node before.
	Moved    int `json:"moved"`
	Unplaced int `json:"unplaced"`
	Evicted  int `json:"evicted"`
	// Utilization is the part of the nodes that pods request, by resource.
	Utilization []Utilization `json:"utilization"`
	// Before and After are the distributions of requests over the nodes.
	Before *Distribution `json:"before,omitempty"`
	After  *Distribution `json:"after,omitempty"`
	// LoadSeconds and ScheduleSeconds are the durations of the simulation's parts.
	LoadSeconds     float64 `json:"loadSeconds"`
	ScheduleSeconds float64 `json:"scheduleSeconds"`
}

// Utilization is the part that pods request of one resource on all nodes.
type Utilization struct {
	Resource string `json:"resource"`
	// Allocatable is the nodes' allocatable amount before, AllocatableAfter the amount afterwards, if
	// that differs.
	Allocatable      string `json:"allocatable"`
	AllocatableAfter string `json:"allocatableAfter,omitempty"`
	// Before and After are parts of it, from 0 to 1.
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

// Left counts the pods without a node after a simulation; evicted pods are created again.
func (r *Report) Left() int { return len(r.Unplaced) + len(r.Evicted) }

// NewNodes returns how many nodes that were added by the simulation got a pod.
func (r *Report) NewNodes() int {
	before, _ := r.State()
	added := map[string]bool{}
	for _, p := range r.Placements {
		if n := before.nodes[p.Node]; n == nil || !n.known {
			added[p.Node] = true
		}
	}
	return len(added)
}
