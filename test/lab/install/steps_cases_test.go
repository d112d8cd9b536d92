//go:build linux && cases

package install

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

func TestDeployKilledAfterApplyConvergesWhenRunAgain(t *testing.T) {
	convergesAfterKill(t, labs.Shared(t, "kubeadm"), "apply")
}
