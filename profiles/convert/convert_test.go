package convert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/profiles/convert"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// convertTo converts the fields of a configuration to a config API of a release: "v1 of v1.31.0".
// It returns the fields of the result and the problems.
func convertTo(t *testing.T, from, to, fields string, lossy bool) (string, schema.Problems) {
	t.Helper()
	doc, err := schema.Parse("config.yaml",
		[]byte("apiVersion: "+schema.ConfigGroup+"/"+from+"\nkind: KubeSchedulerConfiguration\n"+fields))
	if err != nil {
		t.Fatal(err)
	}
	name, version, _ := strings.Cut(to, " of ")
	release, err := versions.Parse(version)
	if err != nil {
		t.Fatal(err)
	}
	api, _ := schema.APINamed(name)
	report := schema.NewReport(doc, lossy)
	convert.Document(doc, report, convert.Options{Release: release, Rules: release.Rules(), To: api})
	text, err := schema.Encode(doc.Root)
	if err != nil {
		t.Fatal(err)
	}
	_, converted, _ := strings.Cut(string(text), "kind: KubeSchedulerConfiguration\n")
	return converted, report.Problems
}

func TestDocument(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, fields, want string }{
		"the default scorer of v1beta1": {"v1beta1", "v1 of v1.37.1", "profiles:\n- schedulerName: a\n", `profiles:
  - schedulerName: a
    plugins:
      score:
        enabled:
          - name: TaintToleration
            weight: 1
          - name: NodeAffinity
            weight: 1
          - name: InterPodAffinity
            weight: 1
`},
		"a scorer becomes a strategy with its arguments": {"v1beta1", "v1 of v1.31.0", `profiles:
- plugins:
    score:
      disabled: [{name: NodeResourcesLeastAllocated}]
      enabled: [{name: NodeResourcesMostAllocated, weight: 3}]
  pluginConfig:
  - name: NodeResourcesMostAllocated
    args: {resources: [{name: cpu, weight: 2}]}
`, `profiles:
  - plugins:
      score:
        enabled: [{name: NodeResourcesFit, weight: 3}, {name: TaintToleration, weight: 1}, {name: NodeAffinity, weight: 1}, {name: InterPodAffinity, weight: 1}]
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 2}]
`},
		"a strategy becomes a scorer": {"v1", "v1beta1 of v1.20.15", `profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}}
`, `profiles:
  - pluginConfig:
      - name: NodeResourcesMostAllocated
        args:
          resources: [{name: cpu, weight: 2}]
    plugins:
      score:
        enabled:
          - name: NodeResourcesMostAllocated
            weight: 1
          - name: TaintToleration
            weight: 3
          - name: NodeAffinity
            weight: 2
          - name: InterPodAffinity
            weight: 2
        disabled:
          - name: NodeResourcesLeastAllocated
          - name: NodePreferAvoidPods
          - name: TaintToleration
          - name: NodeAffinity
          - name: InterPodAffinity
healthzBindAddress: 127.0.0.1:10251
metricsBindAddress: 127.0.0.1:10251
`},
		"multiPoint is written out": {"v1", "v1beta1 of v1.22.17", `profiles:
- plugins:
    multiPoint: {disabled: [{name: ImageLocality}]}
`, `profiles:
  - plugins:
      score:
        disabled:
          - name: ImageLocality
          - name: NodePreferAvoidPods
          - name: TaintToleration
          - name: NodeAffinity
          - name: InterPodAffinity
        enabled:
          - name: TaintToleration
            weight: 3
          - name: NodeAffinity
            weight: 2
          - name: InterPodAffinity
            weight: 2
healthzBindAddress: 127.0.0.1:10251
metricsBindAddress: 127.0.0.1:10251
`},
		"locks without a lease": {
			"v1beta3", "v1beta3 of v1.24.3", "leaderElection: {resourceLock: endpoints}\n",
			"leaderElection: {resourceLock: endpointsleases}\n",
		},
		"locks besides leases": {
			"v1beta3", "v1 of v1.27.16", "leaderElection: {resourceLock: configmapsleases}\n",
			"leaderElection: {resourceLock: leases}\n",
		},
		"a lock that is unchanged": {
			"v1beta3", "v1beta3 of v1.23.17", "leaderElection: {resourceLock: endpoints}\n",
			"leaderElection: {resourceLock: endpoints}\n",
		},
		"gates where preEnqueue is ignored": {
			"v1", "v1beta3 of v1.28.15", "profiles:\n- plugins:\n    preEnqueue: {disabled: [{name: SchedulingGates}]}\n", `profiles:
  - plugins:
      multiPoint:
        disabled:
          - name: SchedulingGates
`,
		},
		"plugins that multiPoint would run twice": {
			"v1", "v1 of v1.29.0", "profiles:\n- plugins:\n    filter: {enabled: [{name: NodePorts}, {name: NodeName}]}\n", `profiles:
  - plugins:
      filter: {enabled: [{name: NodePorts}, {name: NodeName}], disabled: [{name: NodePorts}, {name: NodeName}]}
`,
		},
		"plugins that multiPoint runs once": {
			"v1", "v1 of v1.30.0", "profiles:\n- plugins:\n    filter: {enabled: [{name: NodePorts}, {name: NodeName}]}\n", `profiles:
  - plugins:
      filter: {enabled: [{name: NodePorts}, {name: NodeName}]}
`,
		},
		"a removed plugin with a successor": {
			"v1beta3", "v1 of v1.29.0", "profiles:\n- plugins:\n    score: {enabled: [{name: SelectorSpread, weight: 4}]}\n", ``,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := convertTo(t, tc.from, tc.to, tc.fields, false)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("problems %v, converted (-want +got):\n%s", problems, diff)
			}
		})
	}
}

func TestLossesAreProblemsUnlessAllowed(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, fields, problem, want string }{
		"two scorers": {"v1beta1", "v1 of v1.37.1", `profiles:
- plugins: {score: {enabled: [{name: NodeResourcesMostAllocated, weight: 2}]}}
`, "has one plugin, NodeResourcesFit, with one strategy", `profiles:
  - plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 2}, {name: TaintToleration, weight: 1}, {name: NodeAffinity, weight: 1}, {name: InterPodAffinity, weight: 1}]}}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
`},
		"the scorer of the highest weight stays": {"v1beta1", "v1 of v1.37.1", `profiles:
- plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: NodeResourcesLeastAllocated, weight: 3}, {name: NodeResourcesMostAllocated, weight: 2}]}}
`, "has one plugin, NodeResourcesFit, with one strategy", `profiles:
  - plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 3}, {name: TaintToleration, weight: 1}, {name: NodeAffinity, weight: 1}, {name: InterPodAffinity, weight: 1}]}}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: LeastAllocated
`},
		"a removed plugin without a successor": {
			"v1beta1", "v1 of v1.25.0", "profiles:\n- plugins: {score: {enabled: [{name: NodePreferAvoidPods, weight: 2}]}}\n",
			"NodePreferAvoidPods does not exist in v1.25.0", `profiles:
  - plugins: {score: {enabled: [{name: TaintToleration, weight: 1}, {name: NodeAffinity, weight: 1}, {name: InterPodAffinity, weight: 1}], disabled: [{name: TaintToleration}, {name: NodeAffinity}, {name: InterPodAffinity}]}}
`,
		},
		"gates before 1.26": {
			"v1", "v1beta1 of v1.22.17", "profiles:\n- plugins: {preEnqueue: {enabled: [{name: SchedulingGates}]}}\n", "preEnqueue", `profiles:
  - plugins: {score: {enabled: [{name: TaintToleration, weight: 3}, {name: NodeAffinity, weight: 2}, {name: InterPodAffinity, weight: 2}], disabled: [{name: NodePreferAvoidPods}, {name: TaintToleration}, {name: NodeAffinity}, {name: InterPodAffinity}]}}
healthzBindAddress: 127.0.0.1:10251
metricsBindAddress: 127.0.0.1:10251
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := convertTo(t, tc.from, tc.to, tc.fields, false)
			if len(problems) != 1 || !strings.Contains(problems[0].Message, tc.problem) {
				t.Errorf("got problems %v, want one with %q", problems, tc.problem)
			}
			got, problems := convertTo(t, tc.from, tc.to, tc.fields, true)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("lossy: problems %v, converted (-want +got):\n%s", problems, diff)
			}
		})
	}
}
