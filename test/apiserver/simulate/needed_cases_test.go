//go:build linux && cases

package simulate

import (
	"testing"
)

// A copy of the full node runs its DaemonSet too, so that each one has room for one of the pods.
func TestPendingPodsNeedAsManyNodesAsTheSchedulerSays(t *testing.T) {
	atReleases(t, checkNeeded)
}
