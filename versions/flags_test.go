package versions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--secure_port=1 --v 4 -v=2":            "secure-port=1 v=4 v=2",
		"--leader-elect false":                  "leader-elect (false)",
		"--leader_elect --config=/a=b":          "leader-elect config=/a=b",
		"--config --v=1":                        "config v=1",
		"kube-scheduler --feature_gates A=true": "(kube-scheduler) feature-gates=A=true",
		"--v 1 --config /a b":                   "v=1 config=/a (b)",
		"--v 1":                                 "v=1",
		"--config":                              "config",
		"--config= b":                           "config= (b)",
		"":                                      "",
	} {
		var got []string
		for _, f := range ParseFlags(strings.Fields(line)) {
			switch {
			case f.Name == "":
				got = append(got, "("+f.Words[0]+")")
			case f.HasValue:
				got = append(got, f.Name+"="+f.Value)
			default:
				got = append(got, f.Name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: got %s, want %s", line, text, want)
		}
	}
	if f, found := FindFlag([]string{"--leader_elect", "--leader-elect=false"}, "leader-elect"); !found ||
		f.Value != "false" {
		t.Errorf("got %+v, %v: the last value must win", f, found)
	}
}

func TestFlagReleases(t *testing.T) {
	for name, want := range map[string]string{
		"pod-max-in-unschedulable-pods-duration": "from 1.24 on", "port": "up to 1.23", "v": "in every release",
		"allow-metric-labels":          "from 1.21 on",
		"leader-elect-lease-durations": "",
	} {
		if got := FlagReleases(name); got != want {
			t.Errorf("--%s: got %q, want %q", name, got, want)
		}
	}
}

// Leader election is configured by flags in addition to --config from 1.22 on.
func TestIgnoredFlagsNameTheirFields(t *testing.T) {
	top := []IgnoredFlag{
		{Name: "kube-api-content-type", Field: "clientConnection.contentType"},
		{Name: "kube-api-qps", Field: "clientConnection.qps"}, {Name: "kube-api-burst", Field: "clientConnection.burst"},
		{Name: "profiling", Field: "enableProfiling"},
		{Name: "contention-profiling", Field: "enableContentionProfiling"},
	}
	for minor, want := range map[int][]IgnoredFlag{
		21: append(slices.Clone(top), []IgnoredFlag{
			{Name: "scheduler-name", Field: "schedulerName", InProfile: true},
			{Name: "hard-pod-affinity-symmetric-weight", InProfile: true,
				Field: "hardPodAffinityWeight in the arguments of InterPodAffinity"},
			{Name: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration"},
			{Name: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline"},
			{Name: "leader-elect-retry-period", Field: "leaderElection.retryPeriod"},
		}...),
		22: top,
	} {
		if diff := cmp.Diff(want, rulesOf(minor).IgnoredFlags()); diff != "" {
			t.Errorf("1.%d (-want +got):\n%s", minor, diff)
		}
	}
}

func TestIgnoredFlags(t *testing.T) {
	for _, tc := range []struct {
		flag        string
		first, last int
	}{
		{"kube-api-qps", oldestMinor, newestMinor}, {"profiling", oldestMinor, newestMinor},
		{"scheduler-name", oldestMinor, 21}, {"leader-elect-lease-duration", oldestMinor, 21},
		{"pod-max-in-unschedulable-pods-duration", 0, 0},
	} {
		for minor := oldestMinor; minor <= newestMinor; minor++ {
			ignored := rulesOf(minor).IgnoredFlags()
			got := slices.ContainsFunc(ignored, func(f IgnoredFlag) bool { return f.Name == tc.flag && f.Field != "" })
			if want := tc.first <= minor && minor <= tc.last; got != want {
				t.Errorf("1.%d ignores --%s: %v, want %v", minor, tc.flag, got, want)
			}
		}
	}
}
