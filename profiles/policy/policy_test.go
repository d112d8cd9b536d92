package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/policy"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

const head = "apiVersion: v1\nkind: Policy\n"

// toProfile converts the fields of a Policy to the profile of a configuration.
func toProfile(t *testing.T, fields string) (*yaml.Node, schema.Problems) {
	t.Helper()
	doc, err := schema.Parse("policy.yaml", []byte(head+fields))
	if err != nil {
		t.Fatal(err)
	}
	report := schema.NewReport(doc, false)
	policy.Convert(doc, report, "", "v1beta1")
	return node.Items(doc.Root, "profiles")[0], report.Problems
}

// A Policy is converted to a profile and written back: with the same meaning, as a Policy that
// contains only the differences from the defaults.
func TestPolicyAndBack(t *testing.T) {
	api, _ := schema.APINamed("v1beta1")
	api = api.Of(20)
	for name, tc := range map[string]struct{ policy, want string }{
		"the defaults": {"", ""},
		"no predicates": {"predicates: []\n", `predicates:
  - name: CheckNodeUnschedulable
  - name: PodToleratesNodeTaints
`},
		"predicates with several plugins": {"predicates: [{name: GeneralPredicates}, {name: PodToleratesNodeTaints}]\n", `predicates:
  - name: CheckNodeUnschedulable
  - name: GeneralPredicates
  - name: PodToleratesNodeTaints
`},
		"priorities": {"priorities: [{name: MostRequestedPriority, weight: 3}, {name: EqualPriority, weight: 1}]\n", `priorities:
  - name: MostRequestedPriority
    weight: 3
`},
		"spreading by the default constraints": {
			"priorities: [{name: SelectorSpreadPriority, weight: 2}, {name: EvenPodsSpreadPriority, weight: 5}]\n", `priorities:
  - name: SelectorSpreadPriority
    weight: 5
  - name: EvenPodsSpreadPriority
    weight: 5
`,
		},
		"labels of nodes": {`predicates:
- {name: a, argument: {labelsPresence: {labels: [zone], presence: true}}}
- {name: b, argument: {labelsPresence: {labels: [old], presence: false}}}
priorities:
- {name: c, weight: 2, argument: {labelPreference: {label: fast, presence: true}}}
- {name: d, weight: 2, argument: {labelPreference: {label: slow, presence: false}}}
`, `predicates:
  - name: CheckNodeUnschedulable
  - name: PodToleratesNodeTaints
  - name: NodeLabel-presentLabels
    argument:
      labelsPresence:
        labels:
          - zone
        presence: true
  - name: NodeLabel-absentLabels
    argument:
      labelsPresence:
        labels:
          - old
        presence: false
priorities:
  - name: NodeLabel-presentLabelsPreference-fast
    weight: 2
    argument:
      labelPreference:
        label: fast
        presence: true
  - name: NodeLabel-absentLabelsPreference-slow
    weight: 2
    argument:
      labelPreference:
        label: slow
        presence: false
`},
		"affinity of services": {`predicates: [{name: a, argument: {serviceAffinity: {labels: [rack]}}}]
priorities: [{name: b, weight: 2, argument: {serviceAntiAffinity: {label: zone}}}]
`, `predicates:
  - name: CheckNodeUnschedulable
  - name: PodToleratesNodeTaints
  - name: ServiceAffinity-affinityLabels
    argument:
      serviceAffinity:
        labels:
          - rack
priorities:
  - name: ServiceAffinity-antiAffinityLabelsPreference-zone
    weight: 2
    argument:
      serviceAntiAffinity:
        label: zone
`},
		"capacity ratio": {`priorities:
- name: a
  weight: 4
  argument: {requestedToCapacityRatioArguments: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}], resources: [{name: cpu, weight: 2}]}}
`, `priorities:
  - name: RequestedToCapacityRatio-shape
    weight: 4
    argument:
      requestedToCapacityRatioArguments:
        shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
        resources: [{name: cpu, weight: 2}]
`},
		"the lowest weight of hard affinity that is written": {"hardPodAffinitySymmetricWeight: 2\n",
			"hardPodAffinitySymmetricWeight: 2\n"},
		"the default weight of hard affinity": {"hardPodAffinitySymmetricWeight: 1\n", ""},
		"weight of hard affinity":             {"hardPodAffinitySymmetricWeight: 40\n", "hardPodAffinitySymmetricWeight: 40\n"},
	} {
		t.Run(name, func(t *testing.T) {
			profile, problems := toProfile(t, tc.policy)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			written := node.Mapping()
			policy.Writer{Profile: profile, API: api}.Write(written)
			text, err := schema.Encode(written)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimPrefix(string(text), "{}\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written back (-want +got):\n%s", diff)
			}
			again, problems := toProfile(t, got)
			if lost := policy.SemanticsOf(profile, api).Differences(policy.SemanticsOf(again, api)); len(problems) > 0 ||
				len(lost) > 0 {
				t.Errorf("problems %v, lost %v", problems, lost)
			}
		})
	}
}

func TestPolicyProblems(t *testing.T) {
	for fields, want := range map[string]string{
		"predicates: [{name: PodFitsResource}]\n":           `unknown predicate "PodFitsResource" without an argument`,
		"priorities: [{name: LeastRequested, weight: 1}]\n": `unknown priority "LeastRequested" without an argument`,
		"alwaysCheckAllPredicates: true\n":                  "alwaysCheckAllPredicates has no successor",
		`priorities:
- {name: a, weight: 1, argument: {labelPreference: {label: fast, presence: true}}}
- {name: b, weight: 2, argument: {labelPreference: {label: slow, presence: true}}}
`: "weight 2 differs from 1",
	} {
		_, problems := toProfile(t, fields)
		if len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%s: got problems %v, want one with %q", fields, problems, want)
		}
	}
}
