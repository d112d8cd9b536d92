//go:build linux

// Package schedulers runs the kube-schedulers of releases: where they place pods with each preset,
// how `pmk-sched explain` explains pending pods, and whether they serve the metrics that rules and
// dashboards use. Nodes are objects without kubelets, since where a pod is bound is the scheduler's
// work alone.
package schedulers

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

// planeOf returns the control plane of a release, which shares the API server if it is of that
// release.
func planeOf(t *testing.T, release string) *controlplane.Plane {
	t.Helper()
	if plane := controlplane.On(t, server); release == plane.Release.String() {
		return plane
	}
	return controlplane.Start(t, release)
}
