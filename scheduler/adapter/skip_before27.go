//go:build ignore

package adapter

import (
	"github.com/pmk-sched/pmk-sched/scheduler"
)

// skips implements features that the framework lacks: Skip from PreFilter and PreScore (before
// 1.27) and the set of nodes from PreFilter (before 1.24). The decisions are kept in the cycle's
// state.
type skips struct {
	plugin                string
	preFilters, preScores bool
	filterKey, scoreKey   stateKey
}

func (k *skips) init(p scheduler.Plugin) {
	k.plugin = p.Name()
	_, k.preFilters = p.(scheduler.PreFilterPlugin)
	_, k.preScores = p.(scheduler.PreScorePlugin)
	k.filterKey = stateKey(p.Name() + "/pmk-sched/filter")
	k.scoreKey = stateKey(p.Name() + "/pmk-sched/score")
}

// decision is the decision of PreFilter or PreScore about the plugin's Filter or Score.
type decision struct {
	skip  bool
	nodes map[string]bool // nil: all nodes
}

// Clone returns d, which never changes.
func (d *decision) Clone() stateData { return d }

func decisionAt(s cycleState, key stateKey) *decision {
	data, err := load(s, key)
	if err != nil {
		return nil
	}
	d, _ := data.(*decision)
	return d
}

// afterPreFilter records the decision and returns a status that the framework understands. nodes is
// nil if the framework itself takes the set of nodes.
func (k *skips) afterPreFilter(s cycleState, nodes *scheduler.PreFilterResult,
	result *scheduler.Status) *scheduler.Status {
	d := &decision{skip: result.Code() == scheduler.CodeSkip}
	if nodes != nil {
		d.nodes = map[string]bool{}
		for _, name := range nodes.Nodes {
			d.nodes[name] = true
		}
	}
	store(s, k.filterKey, d)
	if d.skip {
		return nil
	}
	return result
}

// node reports whether PreFilter decided about a node, and returns the result of Filter if so.
func (k *skips) node(s cycleState, n nodeInfo) (decided bool, result *status) {
	if !k.preFilters {
		return false, nil
	}
	d := decisionAt(s, k.filterKey)
	switch {
	case d == nil:
		return false, nil
	case d.skip:
		return true, nil
	case d.nodes != nil && !d.nodes[n.Node().Name]:
		return true, newStatus(unresolvable, "node(s) didn't satisfy plugin "+k.plugin)
	}
	return false, nil
}

// filter reports whether PreFilter returned Skip.
func (k *skips) filter(s cycleState) bool {
	d := decisionAt(s, k.filterKey)
	return d != nil && d.skip
}

// afterPreScore records the decision and returns a status that the framework understands.
func (k *skips) afterPreScore(s cycleState, result *scheduler.Status) *scheduler.Status {
	skipped := result.Code() == scheduler.CodeSkip
	store(s, k.scoreKey, &decision{skip: skipped})
	if skipped {
		return nil
	}
	return result
}

// score reports whether PreScore returned Skip. Every node's score is 0 then.
func (k *skips) score(s cycleState) bool {
	if !k.preScores {
		return false
	}
	d := decisionAt(s, k.scoreKey)
	return d != nil && d.skip
}
