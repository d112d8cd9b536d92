package validate

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// The defaults are 15s, 10s and 2s. renewDeadline must be longer than 1.2 times retryPeriod
// (component-base, config/validation).
func TestDurationsOfLeaderElection(t *testing.T) {
	const (
		negative = "must be greater than 0"
		lease    = "is not longer than renewDeadline"
		deadline = "is not longer than 1.2 times retryPeriod"
	)
	cases := map[string]struct{ lease, want string }{
		"defaults":                        {"{}", ""},
		"zero is the default":             {"{leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}", ""},
		"equal lease and deadline":        {"{leaseDuration: 10s}", "leaseDuration 10s is not longer than renewDeadline 10s"},
		"a lease above the deadline":      {"{leaseDuration: 10001ms}", ""},
		"a deadline above the lease":      {"{renewDeadline: 20s}", lease},
		"equal deadline and retries":      {"{leaseDuration: 30s, renewDeadline: 12s, retryPeriod: 10s}", deadline},
		"a deadline above the retries":    {"{leaseDuration: 30s, renewDeadline: 12001ms, retryPeriod: 10s}", ""},
		"a deadline below the retries":    {"{renewDeadline: 2s}", "renewDeadline 2s " + deadline + " 2s"},
		"a negative lease":                {"{leaseDuration: -1s}", negative},
		"a negative deadline":             {"{renewDeadline: -1s}", negative},
		"a negative period":               {"{retryPeriod: -1s}", negative},
		"not checked without an election": {"{leaderElect: false, leaseDuration: 1s}", ""},
		"checked with an election":        {"{leaderElect: true, leaseDuration: 1s}", lease},
		"another lock":                    {"{resourceLock: endpoints}", `invalid resourceLock "endpoints"`},
		"leases":                          {"{resourceLock: leases}", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: " + tc.lease
			v := newTestValidator(t, source, versions.Release{Major: 1, Minor: 29})
			if wrong := v.checkValues(); wrong != (tc.want != "") {
				t.Errorf("rejected is %t: %v", wrong, v.problems)
			}
			if got := messages(v.problems); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func messages(problems schema.Problems) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Message)
	}
	return strings.Join(all, "; ")
}

// Releases before 1.23 have other locks.
func TestLocksOfOldReleases(t *testing.T) {
	source := "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {resourceLock: endpointsleases}\n"
	if v := newTestValidator(t, source, versions.Release{Major: 1, Minor: 21}); v.checkValues() {
		t.Errorf("rejected: %v", v.problems)
	}
}
