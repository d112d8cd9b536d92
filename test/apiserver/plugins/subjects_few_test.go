//go:build linux && !releases

package plugins

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

func releases() []string { return []string{apiserver.Release} }

func behaviors() []behavior { return everyday }
