//go:build linux

package conformance

import (
	"regexp"
	"slices"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

func TestDescriptionHasEveryBundledPlugin(t *testing.T) {
	bundled, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, match := range regexp.MustCompile(`builtin: (\w+)`).FindAllStringSubmatch(Description, -1) {
		described = append(described, match[1])
	}
	if !slices.Equal(described, bundled) {
		t.Errorf("got %q, want %q", described, bundled)
	}
}
