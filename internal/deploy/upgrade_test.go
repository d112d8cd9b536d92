package deploy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

func TestRevisionRecordsWhatAnUpgradeNeeds(t *testing.T) {
	flags := []string{"--preset=binpack", "--with=builtin:timestamp"}
	r := revision(t, 3, "v1.24.3", func(o *Options) { o.Flags, o.Preset = flags, "binpack" })
	got, err := ReadInstalled(r)
	if err != nil {
		t.Fatal(err)
	}
	configuration := string(got.Configuration)
	got.Configuration = nil
	want := &Installed{
		Image: "registry.example.com/s:v1.24.3@sha256:" + strings.Repeat("0123", 16), Flags: flags,
		APIVersion: "kubescheduler.config.k8s.io/v1beta3", Credentials: CredentialsServiceAccount,
	}
	want.Release.Major, want.Release.Minor, want.Release.Patch = 1, 24, 3
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(configuration, "MostAllocated") {
		t.Errorf("the configuration is not that of the preset:\n%s", configuration)
	}
}

// The plan of the new release adds them again, at their own addresses.
func TestConfigurationOfARevisionHasNoExtendersThatWereAdded(t *testing.T) {
	yes := true
	r := revision(t, 1, "v1.24.3", func(o *Options) {
		o.Extenders = []profiles.Extender{{URLPrefix: "http://own.example.com", FilterVerb: "filter", Ignorable: &yes}}
		o.Wirings = []manifest.Wiring{{Extender: profiles.Extender{Name: "added", URLPrefix: "http://added.example.com", FilterVerb: "filter", Ignorable: &yes}}}
	})
	got, err := ReadInstalled(r)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got.Configuration); !strings.Contains(text, "own.example.com") || strings.Contains(text, "added.example.com") {
		t.Errorf("the configuration is\n%s", text)
	}
}

func TestUpgradeTakesThePolicyOfARevision(t *testing.T) {
	const policy = `{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}], "priorities": [{"name": "LeastRequestedPriority", "weight": 2}]}`
	r := revision(t, 1, "v1.21.14", func(o *Options) {
		o.PolicyConfigMap, o.Configuration, o.ConfigurationName = true, []byte(policy), "policy.json"
	})
	got, err := ReadInstalled(r)
	if err != nil || !strings.Contains(string(got.Configuration), "LeastRequestedPriority") {
		t.Errorf("the configuration is %s, %v", got.Configuration, err)
	}
}

func TestExtenderIsNotUpgraded(t *testing.T) {
	plan := &Plan{Name: "my-extender", Namespace: "kube-system", Extender: &manifest.Extender{Name: "my-extender"}}
	if _, err := ReadInstalled(revisionOf(t, 1, plan)); !problem.IsInvalid(err) || !strings.Contains(err.Error(), "is an extender") {
		t.Errorf("got %v", err)
	}
}
