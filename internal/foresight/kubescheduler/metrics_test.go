package kubescheduler

import "testing"

func TestParseMetrics(t *testing.T) {
	cases := map[string]struct {
		text, cacheSize string
		want            counters
	}{
		"1.24": {
			cacheSize: "scheduler_scheduler_cache_size", text: `# HELP scheduler_pending_pods x
scheduler_pending_pods{queue="active"} 2
scheduler_pending_pods{queue="backoff"} 3
scheduler_pending_pods{queue="unschedulable"} 4
scheduler_scheduler_cache_size{type="assumed_pods"} 9
scheduler_scheduler_cache_size{type="nodes"} 5
scheduler_scheduler_cache_size{type="pods"} 6
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 7
scheduler_schedule_attempts_total{profile="b",result="scheduled"} 1
scheduler_schedule_attempts_total{profile="a",result="unschedulable"} 30
`, want: counters{cachedNodes: 5, cachedPods: 6, active: 5, refused: 4, attempts: 38, scheduled: 8},
		},
		"1.36": {
			cacheSize: "scheduler_cache_size", text: `scheduler_cache_size{type="nodes"} 5
scheduler_pending_pods{queue="gated"} 1
scheduler_pending_pods{queue="unschedulable"} 4
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.2e+03
`, want: counters{cachedNodes: 5, refused: 5, attempts: 1200, scheduled: 1200},
		},
		"nothing yet":    {},
		"not a number":   {text: `scheduler_pending_pods{queue="active"} x` + "\n"},
		"another metric": {text: `scheduler_pending_pods_total{queue="active"} 2` + "\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseMetrics(tc.text, tc.cacheSize); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
