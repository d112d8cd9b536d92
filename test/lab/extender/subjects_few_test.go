//go:build linux && !labs && (cases || faults)

package extender

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

var subjects = []labs.Options{{Release: labs.Release, Layout: "kubeadm"}}

func labOf(t *testing.T, o labs.Options) *labs.Node {
	t.Helper()
	return labs.Shared(t, o.Layout)
}
