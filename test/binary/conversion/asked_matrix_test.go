//go:build matrix

package conversion

import "github.com/pmk-sched/pmk-sched/versions"

// asked has every release judge that reads more than one config API: 1.22 to 1.28.
func asked(versions.Release) bool { return true }
