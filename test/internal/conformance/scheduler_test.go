//go:build linux

package conformance

import (
	"slices"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

func TestDescriptionHasEveryBundledPlugin(t *testing.T) {
	bundled, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := v1alpha1.Decode([]byte(Description))
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, p := range scheduler.Spec.Source.Plugins {
		described = append(described, p.Builtin)
	}
	if !slices.Equal(described, bundled) {
		t.Errorf("got %q, want %q", described, bundled)
	}
}
