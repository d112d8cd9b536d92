package plural_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

func TestTheNounAgreesWithTheNumber(t *testing.T) {
	for want, got := range map[string]string{
		"0 nodes":         plural.Count(0, "node"),
		"1 node":          plural.Count(1, "node"),
		"2 nodes":         plural.Count(2, "node"),
		"1 copy":          plural.Count(1, "copy"),
		"2 copies":        plural.Count(2, "copy"),
		"2 days":          plural.Count(2, "day"),
		"2 addresses":     plural.Count(2, "address"),
		"1 pod is left":   plural.Phrase(1, "pod is left", "pods are left"),
		"3 pods are left": plural.Phrase(3, "pod is left", "pods are left"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
