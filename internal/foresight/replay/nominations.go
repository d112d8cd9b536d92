package replay

import (
	"cmp"
	"slices"
	"time"
)

// nomination is a pod that waits for its preemption's victims on a node.
type nomination struct {
	at       time.Duration
	priority int32
}

// nominationTime is the time before or after a victim's deletion in which a scheduler reports the
// pod that it makes room for.
const nominationTime = 5 * time.Second

// nominations finds the highest priority in a time, in logarithmic time: a recording may have
// millions of nominations and deletions on one node.
type nominations struct {
	all []nomination // in the order of time
	// tree has all priorities in its second half, and the higher one of elements 2i and 2i+1 in
	// element i.
	tree []int32
}

// newNominations returns an index of nominations in time order.
func newNominations(all []nomination) *nominations {
	n := &nominations{all: all, tree: make([]int32, 2*len(all))}
	for i, one := range all {
		n.tree[len(all)+i] = one.priority
	}
	for i := len(all) - 1; i > 0; i-- {
		n.tree[i] = max(n.tree[2*i], n.tree[2*i+1])
	}
	return n
}

// highest returns the nominations' highest priority from one time to another, both included. ok is
// false if there is none.
func (n *nominations) highest(from, to time.Duration) (priority int32, ok bool) {
	if n == nil {
		return 0, false
	}
	begin := n.before(from)
	end := n.before(to + 1)
	if begin >= end {
		return 0, false
	}
	priority = n.all[begin].priority
	for l, r := begin+len(n.all), end+len(n.all); l < r; l, r = l/2, r/2 {
		if l%2 == 1 {
			priority = max(priority, n.tree[l])
			l++
		}
		if r%2 == 1 {
			r--
			priority = max(priority, n.tree[r])
		}
	}
	return priority, true
}

// before returns how many nominations are before a time.
func (n *nominations) before(at time.Duration) int {
	i, _ := slices.BinarySearchFunc(n.all, at, func(one nomination, at time.Duration) int {
		return cmp.Compare(one.at, at)
	})
	return i
}
