//go:build linux

package controlplane

import (
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// WithoutTies returns a scheduler's configuration, without its head, in which no two nodes have the
// same score: the weights of the default plugins that score are a hundred times the default ones,
// and NodeAffinity adds a different value of at most a hundred for each of the nodes, of which
// there are at most a hundred. filter and score list more plugins, in flow style; the weights of
// plugins in score are multiples of a hundred. Before 1.22 it is v1beta1, and then v1beta3 or v1.
func WithoutTies(release versions.Release, nodes []string, filter, score string) string {
	weights := "{name: TaintToleration, weight: 300}, {name: PodTopologySpread, weight: 200}, {name: InterPodAffinity, " +
		"weight: 200}, {name: NodeResourcesFit, weight: 100}"
	if !release.Rules().FitScores {
		weights = "{name: TaintToleration, weight: 100}, {name: PodTopologySpread, weight: 200}, {name: InterPodAffinity, " +
			"weight: 100}, {name: NodeResourcesLeastAllocated, weight: 100}"
	}
	weights += ", {name: NodeResourcesBalancedAllocation, weight: 100}, {name: ImageLocality, weight: 100}, {name: " +
		"NodeAffinity, weight: 1}"
	if score != "" {
		weights += ", " + score
	}
	var terms []string
	for i, node := range nodes {
		terms = append(terms,
			fmt.Sprintf(
				"{weight: %d, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}}", 1+
					i, node))
	}
	return fmt.Sprintf(`profiles:
- plugins:
    filter: {enabled: [%s]}
    score: {disabled: [{name: "*"}], enabled: [%s]}
  pluginConfig:
  - {name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [%s]}}}
`, filter, weights, strings.Join(terms, ", "))
}
