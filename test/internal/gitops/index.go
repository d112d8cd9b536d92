//go:build linux

package gitops

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Scheduler is the name of the scheduler of the chart.
const Scheduler = "my-scheduler"

// registry is the registry of the images.
const registry = "registry.example.com/"

// Names of images whose schedulers do not work.
const (
	NeverStarts     = "never-starts"
	ExceedsDeadline = "exceeds-deadline"
	NeverSchedules  = "never-schedules"
)

// Image returns an image of a release, which no registry has: pods do not run on API servers alone.
// The name is [NeverStarts], [ExceedsDeadline], [NeverSchedules], or of a scheduler that works.
func Image(name, release string) string {
	return fmt.Sprintf("%s%s@sha256:%x", registry, name, sha256.Sum256([]byte(name+release)))
}

// behavior returns the behavior of an image in a [Cluster].
func behavior(image string) apiserver.Behavior {
	name, _, _ := strings.Cut(strings.TrimPrefix(image, registry), "@")
	switch name {
	case NeverStarts:
		return apiserver.NeverStarts
	case ExceedsDeadline:
		return apiserver.ExceedsDeadline
	case NeverSchedules:
		return apiserver.NeverSchedules
	}
	return apiserver.Works
}

// Index returns the release index with an image for each release.
func Index(t testing.TB, images map[string]string) string {
	t.Helper()
	index := &v1alpha1.SchedulerReleases{}
	for release, image := range images {
		parsed, err := versions.Parse(release)
		if err != nil {
			t.Fatal(err)
		}
		configuration, err := json.Marshal(map[string]any{
			"apiVersion": parsed.Rules().Render, "kind": "KubeSchedulerConfiguration",
			"profiles": []any{map[string]any{"schedulerName": Scheduler}},
		})
		if err != nil {
			t.Fatal(err)
		}
		index.Releases = append(index.Releases, v1alpha1.SchedulerRelease{
			Minor: parsed.MinorString(), Release: release, Image: image, Configuration: v1alpha1.Document(configuration),
		})
	}
	text, err := index.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
