package replace

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/versions"
)

// withGates returns a node whose scheduler of 1.24 has feature gates of an older release.
func withGates(t *testing.T, gates string) *testNode {
	t.Helper()
	n := newTestNode(t, "kubeadm")
	n.original = strings.Replace(n.original, "    volumeMounts:", "    - --feature-gates="+gates+"\n    - -v=2\n    volumeMounts:", 1)
	n.write(t, n.layout.Manifest, n.original)
	return n
}

func TestUpgradeLeavesOutFeatureGatesThatTheReleaseDoesNotHave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gates, want string
		notes       int
	}{
		"gone and locked": {"AllowInsecureBackendProxy=true,JobReadyPods=false,CSIStorageCapacity=true", "JobReadyPods=false", 2},
		"all of them":     {"AllowInsecureBackendProxy=true", "", 1},
		"none":            {"JobReadyPods=false,Unknown=true", "JobReadyPods=false,Unknown=true", 0},
	} {
		n := withGates(t, c.gates)
		o := asks("", "default")
		o.StableFor, o.FitGates = time.Millisecond, true
		plan, err := DryRun(t.Context(), n.deps(t), n.info(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(string(plan.New.Data), "    - --feature-gates="+c.want+"\n    - -v=2\n") {
			t.Errorf("%s: want the gates %q in\n%s", name, c.want, plan.New.Data)
		}
		leftOut := slices.DeleteFunc(plan.Notes, func(note string) bool { return !strings.Contains(note, "left out") })
		if len(leftOut) != c.notes {
			t.Errorf("%s: notes %q, want %d", name, leftOut, c.notes)
		}
		o.FitGates = false
		kept, err := DryRun(t.Context(), n.deps(t), n.info(), o)
		if err != nil || !strings.Contains(string(kept.New.Data), "--feature-gates="+c.gates+"\n") {
			t.Errorf("%s: replace changed the gates: %v", name, err)
		}
	}
}

func TestUpgradeRefusesAFeatureGateThatIsLockedToTheOtherValue(t *testing.T) {
	t.Parallel()
	n := withGates(t, "CSIStorageCapacity=false")
	o := asks("", "default")
	o.FitGates = true
	_, err := DryRun(t.Context(), n.deps(t), n.info(), o)
	if !errors.As(err, new(*versions.Error)) || !strings.Contains(err.Error(), n.layout.Manifest) ||
		!strings.Contains(err.Error(), "v1.24.3 locks it to true") {
		t.Errorf("got %v", err)
	}
}
