//go:build linux && labs

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

// subjects are a release of each form of the scheduling framework.
func subjects() []subject {
	return []subject{
		{release: "v1.20.15", layout: "pmk"},
		{release: "v1.22.2", layout: "pmk"},
		{release: "v1.24.3", layout: "pmk", credentials: []string{"node-inline", "hostpath", "serviceaccount"}},
		{release: "v1.29.2", layout: "kubeadm"},
		{release: "v1.33.13", layout: "kubeadm"},
		{release: "v1.34.2", layout: "kubeadm"},
		{release: "v1.37.1", layout: "pmk"},
	}
}

func labOf(t *testing.T, s subject) *labs.Node {
	t.Helper()
	return labs.Start(t, labs.Options{Release: s.release, Layout: s.layout, Workers: 3})
}
