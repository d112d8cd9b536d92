//go:build linux && releases

package plugins

import (
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

func scenarioReleases() []string {
	return []string{"v1.20.15", apiserver.Release, "v1.29.2", "v1.33.13", versions.Releases()[0].String()}
}
