package upgrades

import (
	"math"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Placements are the pods that a scheduler places differently at two releases. Schedulers break
// ties at random, so that each one runs several times: a pod differs if all runs at one release
// agree, all runs at the second agree, and not with them, on its node, its node's zone, or its
// having a node. All other pods are the same, or differ by ties and their consequences.
type Placements struct {
	Scenario string `json:"scenario"`
	// Runs and NewRuns are the numbers of runs by the scheduler at each release.
	Runs    int `json:"runs"`
	NewRuns int `json:"newRuns"`
	// Pods is the number of compared pods, Same the number with the same node in all runs, and Ties
	// the number whose runs differ without a difference between the releases.
	Pods int `json:"pods"`
	Same int `json:"same"`
	Ties int `json:"ties"`
	// Placed and NewPlaced are the numbers of pods that got a node in the first run.
	Placed      int          `json:"placed"`
	NewPlaced   int          `json:"newPlaced"`
	Differences []Difference `json:"differences"`
	// Doubtful is the largest number of differences that are expected if each pod has two equally
	// good nodes and the releases do not differ.
	Doubtful float64 `json:"doubtful"`
}

// The kinds of differences.
const (
	FitsNoMore = "fits no more"
	NewlyFits  = "newly fits"
	Moves      = "moves"
	MovesZone  = "moves to another zone"
)

// Difference is a pod that differs.
type Difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	// Node and NewNode are the nodes in the first runs. The node of a pod without a node is empty.
	Node    string `json:"node"`
	NewNode string `json:"newNode"`
	// Reason is the reason why it has no node.
	Reason string `json:"reason,omitempty"`
}

// comparePlacements compares the results from simulations with the same scenario on the same
// snapshot. Each list has at least one result.
func comparePlacements(from, to []*report.Report) *Placements {
	p := &Placements{
		Scenario: from[0].Scenario, Runs: len(from), NewRuns: len(to), Placed: from[0].Summary.Placed,
		NewPlaced: to[0].Summary.Placed, Differences: []Difference{},
	}
	zones := zonesOf(from[0])
	var all []*report.Report
	for _, o := range report.Outcomes(append(append(all, from...), to...)...) {
		p.Pods++
		kind := kindOf(o.Nodes[:len(from)], o.Nodes[len(from):], zones)
		switch _, stable := agreed(o.Nodes, func(node string) string { return node }); {
		case kind != "":
			d := Difference{Namespace: o.Namespace, Name: o.Name, Kind: kind, Node: o.Nodes[0], NewNode: o.Nodes[len(from)]}
			switch kind {
			case FitsNoMore:
				d.Reason = reasonOf(to[0], o)
			case NewlyFits:
				d.Reason = reasonOf(from[0], o)
			}
			p.Differences = append(p.Differences, d)
		case stable:
			p.Same++
		default:
			p.Ties++
		}
	}
	return p
}

// kindOf returns how a pod differs, or "".
func kindOf(from, to []string, zones map[string]string) string {
	differ := func(of func(node string) string) bool {
		a, aAgree := agreed(from, of)
		b, bAgree := agreed(to, of)
		return aAgree && bAgree && a != b
	}
	switch {
	case differ(func(node string) string {
		if node == "" {
			return ""
		}
		return "placed"
	}):
		if from[0] == "" {
			return NewlyFits
		}
		return FitsNoMore
	case differ(func(node string) string { return zones[node] }):
		return MovesZone
	case differ(func(node string) string { return node }):
		return Moves
	}
	return ""
}

// agreed returns the value that all nodes have.
func agreed(nodes []string, of func(node string) string) (value string, ok bool) {
	value = of(nodes[0])
	for _, node := range nodes[1:] {
		if of(node) != value {
			return "", false
		}
	}
	return value, true
}

// zonesOf returns the nodes' zones.
func zonesOf(r *report.Report) map[string]string {
	zones := map[string]string{}
	before, _ := r.State()
	for _, n := range before.List() {
		zones[n.Name] = n.Zone
	}
	return zones
}

func reasonOf(r *report.Report, o report.Outcome) string {
	for _, u := range r.Unplaced {
		if u.Namespace == o.Namespace && u.Name == o.Name {
			return u.Reason
		}
	}
	return ""
}

// Side counts a scheduler's runs. Ordered is set if it breaks ties in an order, and not at random.
type Side struct {
	Runs    int
	Ordered bool
}

// orderedRuns is the number of runs for a scheduler that breaks ties in an order.
const orderedRuns = 2

// enough reports whether so many runs distinguish ties from differences: a tie that looks like a
// difference is expected in less than one of twenty comparisons.
func (p *Placements) enough(from, to Side) bool {
	p.Doubtful = 0
	if len(p.Differences) == 0 {
		return true
	}
	p.Doubtful = float64(p.Pods) * chance(from, to)
	return p.Doubtful < 0.05
}

// Next returns how often each scheduler has to run if it has run n times in vain.
func (s Side) Next(n int) int {
	if s.Ordered {
		return min(n+1, orderedRuns)
	}
	return n + 1
}

// chance returns the probability that a pod with two equally good nodes seems to differ.
func chance(from, to Side) float64 {
	switch {
	case from.Ordered && to.Ordered:
		if min(from.Runs, to.Runs) < orderedRuns {
			return 1
		}
		return 0
	case from.Ordered:
		return math.Exp2(-float64(to.Runs))
	case to.Ordered:
		return math.Exp2(-float64(from.Runs))
	}
	return 2 * math.Exp2(-float64(from.Runs+to.Runs))
}
