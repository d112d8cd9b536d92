// Package needed returns the number of nodes that the pending pods need, by simulations.
package needed

import "github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"

// Result is the number of nodes that the pending pods need.
type Result struct {
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Templates are the answers, each for one template alone.
	Templates []Need `json:"templates"`
	// Unknown lists facts that decide about the number and that the objects do not contain.
	Unknown  []string `json:"unknown"`
	Programs []string `json:"programs,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// Need is the number of nodes like a template that the pending pods need.
type Need struct {
	Template string `json:"template"`
	// Nodes is the smallest number of new nodes that was found with which as many pods have a node as
	// with more new nodes.
	Nodes int `json:"nodes"`
	// Placed counts the pending pods that have a node then, and Used the new nodes that got one.
	Placed int `json:"placed"`
	Used   int `json:"used"`
	// Unplaced are the pods that have none, and Evicted the pods that made room for others.
	Unplaced []report.Unplaced  `json:"unplaced"`
	Evicted  []report.Placement `json:"evicted"`
	// Limited is set if more nodes than the limit may place more pods.
	Limited bool `json:"limited,omitempty"`
	// Simulations counts the tried node numbers.
	Simulations int `json:"simulations"`
}

// fewestNodes searches the smallest number of nodes from 1 to limit after which no more pods are
// left than with more nodes. It doubles the number until none is left or doubling does not help,
// then tries the most nodes that can help, since pods that are placed all or nothing get no node
// before there are enough for all, and halves the interval. try simulates a number of nodes.
// limited is set if more nodes than the limit may help.
func fewestNodes(limit int, try func(nodes int) (*report.Report, error)) (nodes int, limited bool, err error) {
	pods := 0
	count := func(nodes int) (left int, err error) {
		result, err := try(nodes)
		if err != nil {
			return 0, err
		}
		pods = len(result.Placements) + len(result.Unplaced)
		return result.Left(), nil
	}
	left, err := count(1)
	if err != nil {
		return 0, false, err
	}
	most := min(limit, pods) // each pod on a node of its own
	below, enough := 0, 1    // below is too few, enough is enough for left pods
	for left > 0 && enough < most {
		tooFew, next := enough, min(2*enough, most)
		fewer, err := count(next)
		if err == nil && fewer >= left && next < most {
			tooFew, next = next, most
			fewer, err = count(next)
		}
		if err != nil {
			return 0, false, err
		}
		if fewer >= left {
			break
		}
		below, enough, left = tooFew, next, fewer
	}
	for enough-below > 1 {
		middle := (below + enough) / 2
		more, err := count(middle)
		if err != nil {
			return 0, false, err
		}
		if more <= left {
			enough = middle
		} else {
			below = middle
		}
	}
	return enough, left > 0 && limit < pods, nil
}
