//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// verdict is what PreFilter or PreScore said about the plugin's next point, kept in the cycle's
// state because the framework does not know Skip there, and before 1.24 no set of nodes.
type verdict struct {
	skip  bool
	nodes map[string]bool // nil is all
}

// Clone returns v, which never changes.
func (v *verdict) Clone() framework.StateData { return v }

func (h *Host) verdict(s *framework.CycleState, key framework.StateKey) *verdict {
	data, err := load(s, key)
	if err != nil {
		return nil
	}
	v, _ := data.(*verdict)
	return v
}

// afterPreFilter keeps the verdict and returns the status that the framework understands.
// nodes are given only where the framework takes none.
func (h *Host) afterPreFilter(s *framework.CycleState, nodes *scheduler.PreFilterResult, status *scheduler.Status) *scheduler.Status {
	v := &verdict{skip: status.Code() == scheduler.CodeSkip}
	if nodes != nil {
		v.nodes = map[string]bool{}
		for _, name := range nodes.Nodes {
			v.nodes[name] = true
		}
	}
	store(s, h.filterKey, v)
	if v.skip {
		return nil
	}
	return status
}

// beforeFilter tells whether the verdict decides about a node, and how.
func (h *Host) beforeFilter(s *framework.CycleState, n *framework.NodeInfo) (bool, *framework.Status) {
	if !h.preFilters {
		return false, nil
	}
	v := h.verdict(s, h.filterKey)
	switch {
	case v == nil:
		return false, nil
	case v.skip:
		return true, nil
	case v.nodes != nil && !v.nodes[n.Node().Name]:
		return true, framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) didn't satisfy plugin "+h.plugin.Name())
	}
	return false, nil
}

// filterLeftOut tells whether PreFilter returned Skip.
func (h *Host) filterLeftOut(s *framework.CycleState) bool {
	v := h.verdict(s, h.filterKey)
	return v != nil && v.skip
}

// afterPreScore keeps the verdict and returns the status that the framework understands.
func (h *Host) afterPreScore(s *framework.CycleState, status *scheduler.Status) *scheduler.Status {
	skip := status.Code() == scheduler.CodeSkip
	store(s, h.scoreKey, &verdict{skip: skip})
	if skip {
		return nil
	}
	return status
}

// scoreLeftOut tells whether PreScore returned Skip. All nodes have the score 0 then.
func (h *Host) scoreLeftOut(s *framework.CycleState) bool {
	if !h.preScores {
		return false
	}
	v := h.verdict(s, h.scoreKey)
	return v != nil && v.skip
}
