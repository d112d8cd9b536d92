package profiles_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// written is a configuration as a scheduler from 1.23 on writes it: with the plugins that are
// enabled by default under multiPoint.
const written = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: my-scheduler
  plugins:
    bind: {}
    filter:
      disabled: [{name: NodePorts}]
      enabled: [{name: Rack}]
    multiPoint:
      enabled:
      - {name: PrioritySort, weight: 0}
      - {name: NodePorts, weight: 0}
      - {name: TaintToleration, weight: 3}
      - {name: NodeResourcesFit, weight: 1}
      - {name: ImageLocality, weight: 1}
      - {name: DynamicResources, weight: 0}
      - {name: DefaultBinder, weight: 0}
    preEnqueue: {}
    preFilter:
      disabled: [{name: NodePorts}, {name: NodeResourcesFit}]
    score:
      enabled: [{name: Rack, weight: 7}]
`

const ownConfiguration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 5
extenders:
- {urlPrefix: "http://first", filterVerb: filter, prioritizeVerb: prioritize, weight: 2}
- {urlPrefix: "http://second", prioritizeVerb: prioritize, weight: 3}
profiles:
- schedulerName: my-scheduler
  percentageOfNodesToScore: 5
  plugins:
    filter: {disabled: [{name: NodePorts}], enabled: [{name: Rack}]}
  pluginConfig:
  - {name: Rack, args: {label: rack}}
- schedulerName: other
`

func probe(t *testing.T, release, configuration, defaulted string) *profiles.Probed {
	t.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profiles.Probe(profiles.ProbeRequest{
		Configuration: []byte(configuration), Defaulted: []byte(defaulted), Release: parsed, Profile: "my-scheduler",
		Verb:     "filter",
		Recorder: func(stage int) string { return fmt.Sprintf("http://recorder/%d", stage) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProbeAddsAProfileForEachPluginThatFilters(t *testing.T) {
	p := probe(t, "v1.36.3", ownConfiguration, written)
	var names []string
	for _, plugin := range p.Plugins {
		names = append(names, plugin.Name)
		if !profiles.IsProbe(plugin.Profile) || profiles.IsProbe("my-scheduler") {
			t.Errorf("the profile of %s is not recognized", plugin.Name)
		}
	}
	// NodePorts is disabled at both points, and NodeResourcesFit at one.
	if diff := cmp.Diff([]string{"TaintToleration", "NodeResourcesFit", "DynamicResources", "Rack"}, names); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if p.Weights["TaintToleration"] != 3 || p.Weights["Rack"] != 7 || p.Weights["ImageLocality"] != 1 {
		t.Errorf("weights %v", p.Weights)
	}
	extenders := []profiles.ProbedExtender{{Name: "http://first", Weight: 2, Filters: true},
		{Name: "http://second", Weight: 3}}
	if diff := cmp.Diff(extenders, p.Extenders); diff != "" {
		t.Errorf("extenders (-want +got):\n%s", diff)
	}
	equalRendered(t, "testdata/probe/v1.36.3.yaml", &profiles.Rendered{YAML: p.YAML})
}

// Up to 1.21 the scheduler writes no default plugins.
func TestProbeKnowsTheDefaultsOfOldReleases(t *testing.T) {
	const own = `apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: my-scheduler
  plugins:
    filter: {disabled: [{name: NodePorts}]}
    score: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 9}]}
`
	p := probe(t, "v1.20.15", own, own)
	names := ""
	for _, plugin := range p.Plugins {
		names += plugin.Name + " "
	}
	for _, want := range []string{"NodeResourcesFit", "TaintToleration", "InterPodAffinity", "PodTopologySpread",
		"NodeVolumeLimits", "NodePorts"} {
		if !strings.Contains(names, want+" ") { // NodePorts still runs at preFilter
			t.Errorf("%s is missing in %s", want, names)
		}
	}
	if strings.Contains(names, "ImageLocality") || p.Weights["TaintToleration"] != 9 ||
		p.Weights["PodTopologySpread"] != 2 {
		t.Errorf("plugins %s, weights %v", names, p.Weights)
	}
	if text := string(p.YAML); strings.Contains(text, "multiPoint") || strings.Contains(text, "preEnqueue") {
		t.Errorf("v1beta1 has no multiPoint and no preEnqueue:\n%s", text)
	}
}

func TestProbeNeedsTheProfile(t *testing.T) {
	_, err := profiles.Probe(profiles.ProbeRequest{
		Configuration: []byte(ownConfiguration), Defaulted: []byte(written), Release: versions.Release{Major: 1,
			Minor: 36}, Profile: "none",
	})
	if err == nil || !strings.Contains(err.Error(), "no profile none") {
		t.Error(err)
	}
}
