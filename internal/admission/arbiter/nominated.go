package arbiter

import (
	"cmp"
	"slices"
	"time"
)

// nominatedFor is the time for which a node's room is kept for a pod that is nominated for it. A
// scheduler that is lost does not take a nomination back.
const nominatedFor = 5 * time.Minute

// nominate keeps room for a pod on the node for which it is nominated, until it has a node.
func (l *Ledger) nominate(e *entry) {
	to := e.Nominated
	if e.Node != "" {
		to = ""
	}
	if to != e.nominated {
		l.nominateFor(e, to)
	}
}

func (l *Ledger) nominateFor(e *entry, to string) {
	if from := l.nodes[e.nominated]; from != nil {
		delete(from.nominated, e.UID)
		l.tidy(e.nominated)
	}
	if e.nominated, e.nominatedAt = to, l.now(); to != "" {
		l.node(to).nominated[e.UID] = e
	}
}

// keptFrom returns the pods for which room is kept from a pod: pods of other schedulers that are
// nominated for the node and have the same priority or a higher one. A scheduler knows the
// nominations of its own pods, and counts them so (addNominatedPods in
// pkg/scheduler/framework/runtime/framework.go); it does not know those of another scheduler, whose
// victims come back to the room that was made (kubernetes#130429).
func (n *node) keptFrom(p *Pod, now time.Time) []*entry {
	var kept []*entry
	for _, e := range n.nominated {
		if e.Scheduler != p.Scheduler && e.Priority >= p.Priority && e.on == "" && now.Sub(e.nominatedAt) < nominatedFor {
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b *entry) int { return cmp.Compare(a.UID, b.UID) })
	return kept
}

// keeper returns the first pod that takes something, or nil.
func keeper(kept []*entry, takes func(*Pod) bool) *Pod {
	for _, e := range kept {
		if takes(e.Pod) {
			return e.Pod
		}
	}
	return nil
}
