package profiles_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestSetExtendersRestoresBytes(t *testing.T) {
	yes := true
	made, _, err := certificates.Ensure(certificates.Set{}, certificates.Request{Name: "my-extender", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	add := []profiles.Extender{{
		Name: "my-extender", URLPrefix: "https://10.96.0.7", FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 1,
		Ignorable:   &yes,
		EnableHTTPS: true, TLS: &profiles.ExtenderTLS{ServerName: "my-extender.kube-system.svc", CAData: made.CA.Cert},
	}}
	for _, release := range []string{"v1.20.15", "v1.24.3", "v1.36.3"} {
		for _, preset := range profiles.Presets() {
			t.Run(release+" "+preset.Name, func(t *testing.T) {
				r, err := versions.Parse(release)
				if err != nil {
					t.Fatal(err)
				}
				rendered, err := profiles.Render(profiles.Request{Release: r, SchedulerName: "s", Kubeconfig: "/k",
					LeaderElect: true, Preset: preset.Name})
				if err != nil {
					return // not for this release
				}
				with, _, err := profiles.SetExtenders(rendered.YAML, r, nil, add)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(with), "urlPrefix: https://10.96.0.7\n") {
					t.Errorf("the extender is not there:\n%s", with)
				}
				again, _, err := profiles.SetExtenders(with, r, []string{"https://10.96.0.7"}, add)
				if diff := cmp.Diff(string(with), string(again)); err != nil || diff != "" {
					t.Errorf("put in its own place (%v):\n%s", err, diff)
				}
				without, _, err := profiles.SetExtenders(with, r, []string{"https://10.96.0.7"}, nil)
				if diff := cmp.Diff(string(rendered.YAML), string(without)); err != nil || diff != "" {
					t.Errorf("dropped (%v):\n%s", err, diff)
				}
			})
		}
	}
}

func TestSetExtendersRejectsInvalidExtender(t *testing.T) {
	_, _, err := profiles.SetExtenders(
		[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"),
		versions.Release{Major: 1,
			Minor: 36}, nil, []profiles.Extender{{Name: "x", URLPrefix: "http://127.0.0.1:1", FilterVerb: "filter"}})
	if err == nil || !strings.Contains(err.Error(), "extender x: ignorable is not set") {
		t.Errorf("error is %v", err)
	}
}
