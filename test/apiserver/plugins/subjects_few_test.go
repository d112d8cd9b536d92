//go:build linux && !releases

package plugins

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

func scenarioReleases() []string { return []string{apiserver.Release} }
