//go:build linux && !labs && (cases || faults)

package plugins

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// subject is a release on a layout. credentials are tried in addition to node, the default.
type subject struct {
	release, layout string
	credentials     []string
}

func subjects() []subject {
	return []subject{{release: labs.Release, layout: "pmk", credentials: []string{"serviceaccount"}}}
}

func labOf(t *testing.T, s subject) *labs.Node {
	t.Helper()
	return labs.Shared(t, s.layout)
}
