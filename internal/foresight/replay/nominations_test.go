package replay

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestHighestPriorityOfATime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for size := range 40 {
		var all []nomination
		at := time.Duration(0)
		for range size {
			at += time.Duration(random.IntN(3))
			all = append(all, nomination{at: at, priority: random.Int32N(20) - 10})
		}
		n := newNominations(all)
		for from := time.Duration(-1); from <= at+1; from++ {
			for to := from - 1; to <= at+1; to++ {
				var want []int32
				for _, one := range all {
					if one.at >= from && one.at <= to && (len(want) == 0 || one.priority > want[0]) {
						want = []int32{one.priority}
					}
				}
				if got, ok := n.highest(from, to); ok != (len(want) > 0) || ok && got != want[0] {
					t.Fatalf("%v from %d to %d: got %d, %t, want %v", all, from, to, got, ok, want)
				}
			}
		}
	}
}

// Each nomination compared with each deletion would take hours.
func TestManyPodsAreEvictedAtOnce(t *testing.T) {
	const pods = 100_000
	h := newHistory(time.Minute, nil)
	l := &Life{Node: "a", Priority: 1}
	for range pods {
		h.nominations["a"] = append(h.nominations["a"], nomination{at: time.Second, priority: 1})
		h.deleted = append(h.deleted, deletion{l, time.Second})
	}
	h.Finish()
	if l.Preempted {
		t.Error("a pod of the same priority evicts another")
	}
}
