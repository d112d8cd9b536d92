package elasticquota

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// The pod is in team a, whose max is 8 cores. It has the priority 5.
func TestWhoIsEvictedForAPodBeyondMax(t *testing.T) {
	tainted := scheduler.Unresolvable("node(s) had untolerated taint")
	full := "UnschedulableAndUnresolvable: quota a: no more than 8 of cpu"
	for name, c := range map[string]struct {
		fill func(w *world)
		cpu  string
		want string
	}{
		"those on the node count": {
			func(w *world) { w.run("n-1", "a", "a", 8, "1", 0) }, "2", "n-1 a-6 a-7",
		},
		"those on the node count once, the others are on any node": {
			func(w *world) { w.run("n-0", "a", "old", 1, "1", 0); w.run("n-1", "a", "a", 8, "1", 0) }, "2",
			"n-1 a-5 a-6 a-7",
		},
		"those of another team do not count": {
			func(w *world) { w.run("n-0", "a", "a", 8, "1", 0); w.run("n-1", "b", "b", 8, "1", 0) }, "1", "n-1 a-7 b-7",
		},
		"no one if an eviction in the team is refused": {
			func(w *world) {
				w.run("n-0", "a", "a", 7, "1", 9)
				w.run("n-0", "a", "low", 1, "1", 0)
				w.run("n-1", "b", "b", 8, "1", 0)
				w.evicted.refused["low-0"] = true
			}, "1", "",
		},
		"no one if all in the team are protected": {
			func(w *world) {
				w.run("n-0", "a", "a", 4, "1", 5)
				w.run("n-1", "a", "low", 4, "1", 0, "pmk-sched.io/preemptible")
			}, "1", full,
		},
		"no one if all in the team have the same priority": {
			func(w *world) { w.run("n-1", "a", "a", 8, "1", 5) }, "1", full,
		},
		"no one that has no node yet": {
			func(w *world) {
				w.run("n-1", "a", "a", 7, "1", 5)
				w.plugin.Reserve(t.Context(), nil, w.newPod("a", "reserved", "1", 0), "n-1")
			}, "1", full,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoTeams, 2)
			c.fill(w)
			if got := w.postFilter(w.newPod("a", "new", c.cpu, 5), rejections{"n-0": tainted}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
