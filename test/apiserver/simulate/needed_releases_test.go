//go:build linux && releases

package simulate

import "testing"

func TestPendingPodsNeedAsManyNodesInOtherReleases(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"v1.20.15", "v1.29.2", "v1.34.2", "v1.37.1"} {
		t.Run(release, func(t *testing.T) { checkNeeded(t, release) })
	}
}
