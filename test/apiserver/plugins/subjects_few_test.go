//go:build linux && !releases

package plugins

import "github.com/pmk-sched/pmk-sched/test/internal/apiserver"

// operations is the number of random operations of limitsHold.
const operations = 300

func releases() []string { return []string{apiserver.Release} }

func behaviors() []behavior { return everyday }
