package profiles_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
)

func TestSummarize(t *testing.T) {
	const text = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
delayCacheUntilActive: true
leaderElection: {leaderElect: false}
unknown: 1
profiles:
- schedulerName: a
- plugins: {}
extenders:
- urlPrefix: https://policy.kube-system.svc
`
	elects := false
	want := profiles.Summary{
		Profiles: []string{"a", ""}, Extenders: []string{"https://policy.kube-system.svc"}, LeaderElect: &elects,
		DelayCacheUntilActive: true,
	}
	got, ok := profiles.Summarize([]byte(text))
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("got %t (-want +got):\n%s", ok, diff)
	}
	for _, text := range []string{
		"", "{", "\x00", "kind: Policy\nprofiles: [{schedulerName: a}]", "kind: KubeSchedulerConfiguration\nprofiles: 3",
	} {
		if got, ok := profiles.Summarize([]byte(text)); ok || got.Profiles != nil {
			t.Errorf("%q: got %v, want no summary", text, got)
		}
	}
}
