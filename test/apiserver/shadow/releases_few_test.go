//go:build linux && !releases

package shadow

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

var releases = []string{apiserver.Release}
