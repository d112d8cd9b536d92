//go:build linux && !releases

package explain

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

var releases = []string{apiserver.Release}
