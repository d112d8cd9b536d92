package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const leaderMetrics = `# HELP scheduler_schedule_attempts_total [STABLE] Number of attempts
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{profile="s",result="error"} 1
scheduler_schedule_attempts_total{profile="s",result="scheduled"} 90
scheduler_schedule_attempts_total{profile="a \"b\", c",result="scheduled"} 10
scheduler_schedule_attempts_total{profile="s",result="unschedulable"} 2
# TYPE scheduler_scheduling_attempt_duration_seconds histogram
scheduler_scheduling_attempt_duration_seconds_bucket{profile="s",result="scheduled",le="0.001"} 40
scheduler_scheduling_attempt_duration_seconds_bucket{profile="s",result="scheduled",le="0.002"} 60
scheduler_scheduling_attempt_duration_seconds_bucket{profile="s",result="scheduled",le="0.004"} 100
scheduler_scheduling_attempt_duration_seconds_bucket{profile="s",result="scheduled",le="+Inf"} 100
scheduler_scheduling_attempt_duration_seconds_bucket{profile="s",result="unschedulable",le="+Inf"} 2
leader_election_master_status{name="s"} 1
go_goroutines 120
`

const standbyMetrics = `leader_election_master_status{name="s"} 0
scheduler_schedule_attempts_total{profile="s",result="scheduled"} 5 1700000000000
`

func TestReadSchedulingSumsUpReplicas(t *testing.T) {
	got := ReadScheduling([]string{leaderMetrics, standbyMetrics}, "scheduler_scheduling_attempt_duration_seconds")
	// The 50th of 100 attempts is in the middle of the bucket from 1 to 2 ms, which contains the
	// 41st to the 60th; the 99th near the end of the last.
	want := &Scheduling{Scheduled: 105, Unschedulable: 2, Errors: 1, P50: 0.0015, P99: 0.00395, Leading: 1, Replicas: 2}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("scheduling (-want +got):\n%s", diff)
	}
}

// The histogram of 1.20 to 1.22 does not tell results apart.
func TestReadSchedulingOfAnOldReleaseHasTheLatencyOfAllAttempts(t *testing.T) {
	const text = `# TYPE scheduler_e2e_scheduling_duration_seconds histogram
scheduler_e2e_scheduling_duration_seconds_bucket{le="0.001"} 1
scheduler_e2e_scheduling_duration_seconds_bucket{le="0.003"} 3
scheduler_e2e_scheduling_duration_seconds_bucket{le="+Inf"} 3
`
	got := ReadScheduling([]string{text}, "scheduler_e2e_scheduling_duration_seconds")
	want := &Scheduling{P50: 0.0015, P99: 0.00297, Replicas: 1}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("scheduling (-want +got):\n%s", diff)
	}
}

func TestReadSchedulingOfAnotherReleaseHasNoLatency(t *testing.T) {
	got := ReadScheduling([]string{leaderMetrics}, "scheduler_e2e_scheduling_duration_seconds")
	if got.Scheduled != 100 || got.P50 != 0 || got.P99 != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestReadSchedulingIgnoresOtherText(t *testing.T) {
	got := ReadScheduling([]string{"", "not found\n", "a{b=} 1\n", `a{b="c} 1`,
		"scheduler_schedule_attempts_total{result=\"scheduled\"} many\n"}, "d")
	if diff := cmp.Diff(&Scheduling{Replicas: 5}, got); diff != "" {
		t.Errorf("scheduling (-want +got):\n%s", diff)
	}
}
