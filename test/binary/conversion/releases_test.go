package conversion

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/versions"
)

// releases are the releases that are asked.
func releases(t testing.TB) []versions.Release {
	t.Helper()
	var chosen []versions.Release
	for _, release := range versions.Releases() {
		rules, _, err := versions.Select(release)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.Accepted) > 1 && asked(release) {
			chosen = append(chosen, release)
		}
	}
	return chosen
}
