package simulate

import "testing"

func TestParseMetrics(t *testing.T) {
	cases := map[string]struct {
		text string
		want metrics
	}{
		"1.24": {
			`# HELP scheduler_pending_pods x
scheduler_pending_pods{queue="active"} 2
scheduler_pending_pods{queue="backoff"} 3
scheduler_pending_pods{queue="unschedulable"} 4
scheduler_scheduler_cache_size{type="assumed_pods"} 9
scheduler_scheduler_cache_size{type="nodes"} 5
scheduler_scheduler_cache_size{type="pods"} 6
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 7
scheduler_schedule_attempts_total{profile="b",result="scheduled"} 1
scheduler_schedule_attempts_total{profile="a",result="unschedulable"} 30
`, metrics{cachedNodes: 5, cachedPods: 6, active: 5, refused: 4, scheduled: 8},
		},
		"1.36": {
			`scheduler_cache_size{type="nodes"} 5
scheduler_pending_pods{queue="gated"} 1
scheduler_pending_pods{queue="unschedulable"} 4
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 1.2e+03
`, metrics{cachedNodes: 5, refused: 5, scheduled: 1200},
		},
		"nothing yet":    {"", metrics{}},
		"not a number":   {`scheduler_pending_pods{queue="active"} x` + "\n", metrics{}},
		"another metric": {`scheduler_pending_pods_total{queue="active"} 2` + "\n", metrics{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseMetrics(tc.text); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
