package profiles_test

import (
	"fmt"
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
