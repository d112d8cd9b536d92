//go:build linux

package simulate

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// The same scheduler on equal nodes: most differences are noise, and pods that fit on one node only
// have no difference.
func TestTiesAreNoise(t *testing.T) {
	t.Parallel()
	var objects strings.Builder
	for _, name := range strings.Split("abcdefgh", "") {
		objects.WriteString(node("node-"+name, 4, "", ""))
	}
	objects.WriteString(node("special", 4, "pool: special", ""))
	for _, name := range strings.Split("abcdefgh", "") {
		objects.WriteString(pod("free-"+name, "1", "",
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "+
				"[{matchExpressions: [{key: pool, operator: DoesNotExist}]}]}}}", ""))
		objects.WriteString(pod("held-"+name, "100m", "", "nodeSelector: {pool: special}", ""))
	}
	var runs [3]report.Report
	for i := range runs {
		runs[i] = simulatePending(t, objects.String())
	}
	c := report.NewComparison(&runs[0], &runs[1], &runs[2], "default")
	if c.Same < 8 {
		t.Errorf("%d pods are the same, want at least the 8 without a choice", c.Same)
	}
	if len(c.Noise) == 0 {
		t.Error("nothing is noise")
	}
	if all := c.Same + len(c.Noise) + len(c.Differences); all != 16 {
		t.Errorf("%d pods are compared, want 16: %+v", all, c)
	}
	for _, d := range append(c.Noise, c.Differences...) {
		if !strings.HasPrefix(d.Name, "free-") {
			t.Errorf("%s differs", d.Name)
		}
	}
}
