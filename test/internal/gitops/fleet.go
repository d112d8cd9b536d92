//go:build linux

package gitops

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// Releases of the clusters of a fleet. Tests break and upgrade the cluster of Oldest; Next is its
// next release.
const (
	Oldest = apiserver.Release
	Next   = "v1.25.4"
	Newest = "v1.29.2"
)

func releases() []string { return []string{Oldest, Next, "v1.28.15", Newest} }

// Fleet are clusters of several releases with the chart of one Git repository.
type Fleet struct {
	Git *Repository
	// Clusters are by their release at the start.
	Clusters map[string]*Cluster
	// Images are the images of the chart by release, and Commit is the newest commit.
	Images map[string]string
	Commit string
}

// StartFleet starts the clusters and commits a chart with images for all of them. It ends with the
// test.
func StartFleet(t testing.TB) *Fleet {
	t.Helper()
	f := &Fleet{Git: NewRepository(t), Clusters: map[string]*Cluster{}, Images: map[string]string{}}
	for _, release := range releases() {
		f.Clusters[release] = StartCluster(t, release)
		f.Images[release] = Image(Scheduler, release)
	}
	f.Push(t)
	return f
}

// Push commits the chart with the images.
func (f *Fleet) Push(t testing.TB) {
	t.Helper()
	f.Commit = f.Git.CommitChart(t, Index(t, f.Images))
}
