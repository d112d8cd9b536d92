//go:build !matrix

package conversion

import "github.com/pmk-sched/pmk-sched/versions"

// asked reports whether the tests run the scheduler of a release: only v1.24.3, which other tests
// build too, and with the build tag matrix all releases.
func asked(release versions.Release) bool { return release.String() == "v1.24.3" }

// generated is how many documents are made at random for each config API of each release.
const generated = 8
