//go:build matrix

package conversion

import "github.com/pmk-sched/pmk-sched/versions"

// asked reports whether the tests run the scheduler of a release: all of them.
func asked(versions.Release) bool { return true }

// generated is how many documents are made at random for each config API of each release.
const generated = 25
