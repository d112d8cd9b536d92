//go:build linux && releases

package shadow

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

var releases = []string{"v1.20.15", apiserver.Release, "v1.29.2", "v1.37.1"}
