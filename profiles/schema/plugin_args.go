package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// KnownArgs returns an in-tree plugin's arguments, and false if it has none or is not in-tree
// (staging/src/k8s.io/kube-scheduler/config/<api>/types_pluginargs.go). Arguments of other plugins
// are not changed.
func KnownArgs(plugin string) (Args, bool) {
	for _, a := range argsObjects() {
		if a.Plugin == plugin {
			return a, true
		}
	}
	return Args{}, false
}

// Args are one plugin's arguments: the fields of the kind <plugin>Args.
type Args struct {
	Plugin string
	// APIs are the config APIs that have the kind; Since is its first minor release.
	APIs   APISet
	Since  int
	Fields []Field
}

// Object returns the arguments' fields, including apiVersion and kind.
func (a Args) Object() Object {
	head := []Field{{Name: "apiVersion", Kind: kindString}, {Name: "kind", Kind: kindString}}
	return Object{Fields: append(head, a.Fields...)}
}

// HaveDefaults reports whether arguments contain nothing but the scheduler's defaults.
func (a Args) HaveDefaults(given *yaml.Node) bool {
	for i := 0; node.IsMapping(given) && i+1 < len(given.Content); i += 2 {
		key := given.Content[i].Value
		at := slices.IndexFunc(a.Fields, func(f Field) bool { return f.Name == key })
		if key != "apiVersion" && key != "kind" && (at < 0 || !a.Fields[at].HasDefault(given.Content[i+1])) {
			return false
		}
	}
	return true
}

// In reports whether the kind exists in the config API, in any release or in the API's minor
// release.
func (a Args) In(target API) bool {
	return (a.APIs == 0 || a.APIs.Has(target.Set)) && (target.Minor == 0 || target.Minor >= a.Since)
}

func argsObjects() []Args {
	resources := Field{Name: "resources", Kind: KindObjects, Object: resourceSpec}
	evenly := resources
	evenly.Default = "[{name: cpu, weight: 1}, {name: memory, weight: 1}]"
	shape := Field{Name: "shape", Kind: KindObjects, Object: shapePoint}
	return []Args{
		{Plugin: "DefaultPreemption", Fields: []Field{
			{Name: "minCandidateNodesPercentage", Kind: kindInt, Bounded: true, Most: 100},
			{Name: "minCandidateNodesAbsolute", Kind: kindInt, Bounded: true},
		}},
		{Plugin: "DynamicResources", APIs: InV1, Since: 34, Fields: []Field{
			{Name: "filterTimeout", Kind: kindDuration, Default: "10s"},
			{Name: "bindingTimeout", Kind: kindDuration, Since: 35, Default: "600s", Lost: "the timeout does not exist before 1.35"},
		}},
		{Plugin: "InterPodAffinity", Fields: []Field{
			{Name: "hardPodAffinityWeight", Kind: kindInt, Bounded: true, Most: 100},
			{Name: "ignorePreferredTermsOfExistingPods", Kind: kindBool, APIs: InV1beta2 | inV1beta3 | InV1, Since: 27,
				Lost: "preferred terms of existing pods are respected, as always before 1.27"},
		}},
		{Plugin: "NodeAffinity", Fields: []Field{{Name: "addedAffinity", Kind: kindObject, Object: nodeAffinity}}},
		{Plugin: "NodeLabel", APIs: InV1beta1, Fields: []Field{
			{Name: "presentLabels", Kind: kindStrings}, {Name: "absentLabels", Kind: kindStrings},
			{Name: "presentLabelsPreference", Kind: kindStrings}, {Name: "absentLabelsPreference", Kind: kindStrings},
		}},
		{Plugin: "NodeResourcesBalancedAllocation", Since: 22, Fields: []Field{evenly}},
		{Plugin: "NodeResourcesFit", Fields: []Field{
			{Name: "ignoredResources", Kind: kindStrings},
			{Name: "ignoredResourceGroups", Kind: kindStrings},
			{Name: "scoringStrategy", Kind: kindObject, Object: scoringStrategy, Since: 22},
		}},
		{Plugin: LeastAllocated, APIs: InV1beta1, Fields: []Field{resources}},
		{Plugin: MostAllocated, APIs: InV1beta1, Fields: []Field{resources}},
		{Plugin: "PodTopologySpread", Fields: []Field{
			{Name: "defaultConstraints", Kind: KindObjects, Object: spreadConstraint},
			{Name: "defaultingType", Kind: kindString},
		}},
		{Plugin: CapacityRatio, APIs: InV1beta1, Fields: []Field{shape,
			{Name: "resources", Kind: KindObjects, Object: heavyResource}}},
		{Plugin: "ServiceAffinity", APIs: InV1beta1, Fields: []Field{
			{Name: "affinityLabels", Kind: kindStrings}, {Name: "antiAffinityLabelsPreference", Kind: kindStrings},
		}},
		{Plugin: "VolumeBinding", Fields: []Field{
			{Name: "bindTimeoutSeconds", Kind: kindInt64, Bounded: true},
			{Name: "shape", Kind: KindObjects, Object: shapePoint, Since: 22,
				Default: "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]",
				Lost:    "it requires the feature gate VolumeCapacityPriority, which the release lacks"},
		}},
	}
}

func scoringStrategy() Object {
	return Object{Fields: []Field{
		{Name: "type", Kind: kindString},
		{Name: "resources", Kind: KindObjects, Object: resourceSpec},
		{Name: "requestedToCapacityRatio", Kind: kindObject, Object: func() Object {
			return Object{Fields: []Field{{Name: "shape", Kind: KindObjects, Object: shapePoint}}}
		}},
	}}
}

func resourceSpec() Object {
	return Object{Fields: []Field{
		{Name: "name", Kind: kindString},
		{Name: "weight", Kind: kindInt64, Bounded: true, Most: 100},
	}}
}

// heavyResource is a resource whose weight has no upper bound.
func heavyResource() Object {
	return Object{Fields: []Field{{Name: "name", Kind: kindString}, {Name: "weight", Kind: kindInt64, Bounded: true}}}
}

func shapePoint() Object {
	return Object{Fields: []Field{
		{Name: "utilization", Kind: kindInt, Bounded: true, Most: 100},
		{Name: "score", Kind: kindInt, Bounded: true, Most: 10},
	}}
}

// Strategy pairs a v1beta1 plugin with the NodeResourcesFit strategy that replaced it in v1beta2
// (types_pluginargs.go, ScoringStrategyType).
type Strategy struct{ Plugin, Name string }

// Strategies returns all pairs.
func Strategies() []Strategy {
	return []Strategy{
		{LeastAllocated, "LeastAllocated"},
		{MostAllocated, "MostAllocated"},
		{CapacityRatio, "RequestedToCapacityRatio"},
	}
}
