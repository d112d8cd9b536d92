package replace

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// ensure replaces the default scheduler if it is not as wanted, and reports whether it changed
// anything.
func (n *testNode) ensure(t *testing.T, o Options) bool {
	t.Helper()
	o.StableFor = 10 * time.Millisecond
	outcome, err := Ensure(t.Context(), n.deps(t), n.info(), o)
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Backup != ""
}

// A run through all nodes that is resumed does not touch nodes that are done, and repairs all
// others: the files of the node decide, not its pod.
func TestANodeThatIsDoneIsLeftAlone(t *testing.T) {
	o := asks("", "binpack")
	for _, layout := range []string{"kubeadm", "pmk"} {
		for name, c := range map[string]struct {
			change func(t *testing.T, n *testNode)
			o      Options
			runs   bool
		}{
			"unchanged":             {change: func(*testing.T, *testNode) {}, o: o},
			"another configuration": {change: func(*testing.T, *testNode) {}, o: asks("", "spread"), runs: true},
			"restored by hand": {change: func(t *testing.T, n *testNode) { n.write(t, n.layout.Manifest, n.original) },
				o: o, runs: true},
			"no configuration": {change: func(t *testing.T, n *testNode) {
				found, err := filepath.Glob(n.path(filepath.Join(n.layout.ConfigDir, configStem+"*")))
				if err != nil || len(found) != 1 {
					t.Fatalf("%v, %v", found, err)
				}
				if err := os.Remove(found[0]); err != nil {
					t.Fatal(err)
				}
			}, o: o, runs: true},
			"a run was killed": {change: func(t *testing.T, n *testNode) {
				time.Sleep(time.Second) // backups are named by time
				n.kill(t, o, "swap")
			}, o: o, runs: true},
		} {
			t.Run(layout+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := newTestNode(t, layout)
					if !n.ensure(t, o) {
						t.Fatal("nothing was changed on a node with the original scheduler")
					}
					c.change(t, n)
					before := n.state(t)
					if got := n.ensure(t, c.o); got != c.runs {
						t.Errorf("changed: %v, want %v", got, c.runs)
					}
					if after := n.state(t); !c.runs && after != before {
						t.Errorf("files changed from %+v to %+v", before, after)
					}
					if n.ensure(t, c.o) {
						t.Error("a node that is done was changed")
					}
				})
			})
		}
	}
}
