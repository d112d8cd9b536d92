//go:build !matrix

package conversion

import "github.com/pmk-sched/pmk-sched/versions"

// asked has the release judge that all tests build: v1beta2 and v1beta3. With the build tag matrix the others do too.
func asked(release versions.Release) bool { return release.String() == "v1.24.3" }
