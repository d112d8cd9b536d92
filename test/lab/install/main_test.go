//go:build linux

// Package install tests a second scheduler on the control-plane nodes of both layouts: detect,
// build, deploy, verify, uninstall, and the handling of failures.
package install

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }
