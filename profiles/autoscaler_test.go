package profiles_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// compared has each difference.
const compared = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
leaderElection: {leaderElect: true}
profiles:
- schedulerName: packer
  plugins:
    multiPoint: {enabled: [{name: LoadAware}], disabled: [{name: PrioritySort}]}
    queueSort: {enabled: [{name: Coscheduling}]}
    filter: {disabled: [{name: NodePorts}]}
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}]}
  pluginConfig:
  - name: LoadAware
    args: {threshold: 3}
  - name: NodeAffinity
    args: {addedAffinity: {}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 3, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}
- schedulerName: other
extenders:
- {urlPrefix: "http://policy", filterVerb: filter}
- {urlPrefix: "http://scores", prioritizeVerb: score, weight: 1}
`

func TestAutoscalersThatDecideDifferently(t *testing.T) {
	cases := map[string]struct {
		configuration string
		autoscaler    profiles.Autoscaler
		want          string
		texts         []string
	}{
		"cluster-autoscaler": {compared, profiles.ClusterAutoscaler,
			"profiles scheduler-name plugins disabled-plugins default-constraints arguments extenders scoring preemption",
			[]string{"packer, other", "plugin Coscheduling, LoadAware", "it runs NodePorts, PrioritySort", "over zone",
				"addedAffinity of NodeAffinity", "extender http://policy"}},
		"Karpenter": {compared, profiles.Karpenter,
			"profiles scheduler-name plugins disabled-plugins default-constraints default-constraints arguments extenders scoring",
			[]string{"over zone (DoNotSchedule) without SCHEDULER_CONFIG", "over rack (ScheduleAnyway)", "rules of its own"}},
		"the default configuration": {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
			profiles.ClusterAutoscaler, "scoring preemption", nil},
		"all defaults disabled": {v1 + "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}, " +
			"preFilter: {disabled: [{name: '*'}]}}}]\n", profiles.ClusterAutoscaler,
			"disabled-plugins scoring preemption", []string{"it runs all default plugins"}},
		"one plugin and arguments": {v1 + "profiles: [{plugins: {filter: {enabled: [{name: One}]}}, pluginConfig: " +
			"[{name: NodeResourcesFit, args: {ignoredResourceGroups: [a]}}]}]\n", profiles.ClusterAutoscaler,
			"plugins arguments scoring preemption", []string{"it does not have plugin One:",
				"ignoredResourceGroups of NodeResourcesFit"}},
		"a Policy": {"apiVersion: v1\nkind: Policy\n", profiles.Karpenter, "policy", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := profiles.CompareAutoscaler([]byte(tc.configuration), tc.autoscaler)
			if err != nil {
				t.Fatal(err)
			}
			var subjects, texts []string
			var whole strings.Builder
			for _, d := range found {
				subjects, texts = append(subjects, d.Subject), append(texts, d.Text)
				fmt.Fprintf(&whole, "%s: %s\n    %s\n", d.Subject, d.Text, d.Hint)
			}
			golden.Equal(t, "testdata/autoscaler/"+strings.ReplaceAll(name, " ", "-")+".txt", whole.String())
			if got := strings.Join(subjects, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			for _, text := range tc.texts {
				if !strings.Contains(strings.Join(texts, "\n"), text) {
					t.Errorf("no difference has %q: %q", text, texts)
				}
			}
		})
	}
}

func TestConfigurationOfAnAutoscaler(t *testing.T) {
	cases := map[profiles.Autoscaler]struct{ want, note string }{
		profiles.ClusterAutoscaler: {`apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: packer
    plugins:
      multiPoint: {enabled: [], disabled: [{name: PrioritySort}]}
      filter: {disabled: [{name: NodePorts}]}
      score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}]}
      queueSort:
        enabled:
          - name: PrioritySort
    pluginConfig:
      - name: NodeAffinity
        args: {addedAffinity: {}}
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints:
            - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
            - {maxSkew: 3, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}
`, "left out, because cluster-autoscaler exits if it does not have a plugin: Coscheduling, LoadAware"},
		profiles.Karpenter: {`podTopologySpread:
  defaultConstraints:
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
    - {maxSkew: 3, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}
`, "SCHEDULER_CONFIG"},
	}
	for autoscaler, tc := range cases {
		t.Run(string(autoscaler), func(t *testing.T) {
			text, notes, err := profiles.ForAutoscaler([]byte(compared), autoscaler, "packer")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			all := strings.Join(notes, "\n")
			if !strings.Contains(all, tc.note) || !strings.Contains(all, "profile other is left out") {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

func TestNotesOnAConfigurationOfAnAutoscaler(t *testing.T) {
	const (
		use        = "for --scheduler-config-file of cluster-autoscaler 1.27 and later, of the minor release of the cluster"
		reads      = " is left out: cluster-autoscaler reads one"
		leftOut    = "left out, because cluster-autoscaler exits if it does not have a plugin: "
		two        = v1 + "profiles: [{}, {schedulerName: second}]\n"
		twoPlugins = "filter: {enabled: [{name: Two}, {name: One}]}, score: {enabled: [{name: One}]}"
	)
	cases := map[string]struct {
		configuration, name string
		want                []string
	}{
		"one profile":         {v1, "default-scheduler", []string{use}},
		"another profile":     {two, "second", []string{"profile default-scheduler" + reads, use}},
		"the first profile":   {two, "third", []string{"profile second" + reads, use}},
		"a compiled-in one":   {pluginSets("filter: {enabled: [{name: NodePorts}, {name: One}]}"), "", []string{use, leftOut + "One"}},
		"compiled-in plugins": {pluginSets(twoPlugins), "", []string{use, leftOut + "One, Two"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, notes, err := profiles.ForAutoscaler([]byte(tc.configuration), profiles.ClusterAutoscaler, tc.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, notes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Names of plugins that cluster-autoscaler does not have may be disabled, and Karpenter refuses
// some fields of constraints.
func TestConfigurationOfAnAutoscalerHasNoForeignParts(t *testing.T) {
	const constraint = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway"
	cases := map[profiles.Autoscaler]struct{ configuration, want string }{
		profiles.ClusterAutoscaler: {pluginSets("filter: {disabled: [{name: One}, {name: NodePorts}, {name: '*'}]}"),
			"plugins: {filter: {disabled: [{name: NodePorts}, {name: '*'}]}}\n"},
		profiles.Karpenter: {spreadArgs("{defaultingType: List, defaultConstraints: [" + constraint +
			", labelSelector: {}, matchLabelKeys: [a]}]}"),
			"podTopologySpread:\n  defaultConstraints:\n    - " + constraint + "}\n"},
	}
	for autoscaler, tc := range cases {
		t.Run(string(autoscaler), func(t *testing.T) {
			text, _, err := profiles.ForAutoscaler([]byte(tc.configuration), autoscaler, "my-scheduler")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), tc.want) {
				t.Errorf("no %q in:\n%s", tc.want, text)
			}
		})
	}
}

// The scheduler does not repair its configuration.
func TestAutoscalersNeedAConfiguration(t *testing.T) {
	wrapped, err := os.ReadFile(article + "as-printed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"invalid YAML": "{", "wrapped": string(wrapped)} {
		if _, err := profiles.CompareAutoscaler([]byte(text), profiles.Karpenter); err == nil {
			t.Errorf("%s: no error of a comparison", name)
		}
		if _, _, err := profiles.ForAutoscaler([]byte(text), profiles.Karpenter, ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, _, err = profiles.ForAutoscaler([]byte("apiVersion: v1\nkind: Policy\n"), profiles.Karpenter, "")
	if err == nil || !strings.Contains(err.Error(), "use a KubeSchedulerConfiguration") {
		t.Errorf("a Policy: %v", err)
	}
}

// The framework requires plugins at queueSort and bind, also if the profile disables the defaults.
func TestConfigurationOfAnAutoscalerWithoutDefaultPlugins(t *testing.T) {
	cases := map[string]struct{ enabled, want string }{
		"neither is enabled": {"[{name: NodePorts}]", `      queueSort:
        enabled:
          - name: PrioritySort
      bind:
        enabled:
          - name: DefaultBinder
`},
		"one is enabled": {"[{name: PrioritySort}]", `      bind:
        enabled:
          - name: DefaultBinder
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := v1 + "profiles:\n  - plugins:\n      multiPoint: {disabled: [{name: '*'}], enabled: " + tc.enabled + "}\n"
			for range 10 {
				text, _, err := profiles.ForAutoscaler([]byte(source), profiles.ClusterAutoscaler, "default-scheduler")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(source+tc.want, string(text)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
