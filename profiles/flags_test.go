package profiles_test

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// pmk-sched always sets --config, with which kube-scheduler ignores some flags.
func TestFlagWarnings(t *testing.T) {
	for _, c := range []struct{ name, release, arg, want string }{
		{"rate", "v1.24.3", "--kube-api-qps=500", "set clientConnection.qps there"},
		{"boolean", "v1.31.0", "--profiling", "set enableProfiling there"},
		{"underscores", "v1.24.3", "--contention_profiling=false", "set enableContentionProfiling there"},
		{"lease, before 1.22", "v1.21.3", "--leader-elect-retry-period=1s", "set leaderElection.retryPeriod there"},
		{"lease, from 1.22 on", "v1.22.0", "--leader-elect-retry-period=1s", ""},
		{"flag of the image", "v1.24.3", "--debug-scores=3", "is not a flag of kube-scheduler v1.24.3"},
		{"applies", "v1.24.3", "--pod-max-in-unschedulable-pods-duration=60s", ""},
		{"short form", "v1.24.3", "-v4", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			release, err := versions.Parse(c.release)
			if err != nil {
				t.Fatal(err)
			}
			line := profiles.CommandLine{Release: release, Given: []string{c.arg}}
			if _, err := line.Flags(); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(line.Warnings(), "\n")
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
