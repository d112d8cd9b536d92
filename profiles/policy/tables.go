package policy

import (
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// The names in a Policy, and the plugins that replaced them, follow
// pkg/scheduler/framework/plugins/legacy_registry.go, 1.22.
const (
	selectorSpreadPriority = "SelectorSpreadPriority"
	evenPodsSpreadPriority = "EvenPodsSpreadPriority"
	equalPriority          = "EqualPriority"
)

// predicate is a Policy's predicate and its filter plugins, which run at all of their extension
// points except for scoring.
type predicate struct {
	name    string
	plugins []string
	// byDefault means that it is enabled if a Policy has no predicates; always, that it is always
	// enabled.
	byDefault, always bool
}

func predicates() []predicate {
	return []predicate{
		{name: "CheckNodeUnschedulable", plugins: []string{"NodeUnschedulable"}, byDefault: true, always: true},
		{name: "GeneralPredicates", plugins: []string{
			schema.ResourcesFit, "NodeName", "NodePorts", "NodeAffinity"}, byDefault: true},
		{name: "HostName", plugins: []string{"NodeName"}},
		{name: "PodFitsHostPorts", plugins: []string{"NodePorts"}},
		{name: "PodFitsPorts", plugins: []string{"NodePorts"}},
		{name: "MatchNodeSelector", plugins: []string{"NodeAffinity"}},
		{name: "PodFitsResources", plugins: []string{schema.ResourcesFit}},
		{name: "NoDiskConflict", plugins: []string{"VolumeRestrictions"}, byDefault: true},
		{name: "PodToleratesNodeTaints", plugins: []string{"TaintToleration"}, byDefault: true, always: true},
		{name: "CheckNodeLabelPresence", plugins: []string{schema.NodeLabel}},
		{name: "CheckServiceAffinity", plugins: []string{schema.ServiceAffinity}},
		{name: "MaxEBSVolumeCount", plugins: []string{"EBSLimits"}, byDefault: true},
		{name: "MaxGCEPDVolumeCount", plugins: []string{"GCEPDLimits"}, byDefault: true},
		{name: "MaxCSIVolumeCountPred", plugins: []string{"NodeVolumeLimits"}, byDefault: true},
		{name: "MaxAzureDiskVolumeCount", plugins: []string{"AzureDiskLimits"}, byDefault: true},
		{name: "MaxCinderVolumeCount", plugins: []string{"CinderLimits"}},
		{name: "CheckVolumeBinding", plugins: []string{schema.VolumeBinding}, byDefault: true},
		{name: "NoVolumeZoneConflict", plugins: []string{"VolumeZone"}, byDefault: true},
		{name: "EvenPodsSpread", plugins: []string{schema.PodTopologySpread}, byDefault: true},
		{name: "MatchInterPodAffinity", plugins: []string{schema.InterPodAffinity}, byDefault: true},
	}
}

// priority is a priority of a Policy and its scoring plugin.
type priority struct {
	name, plugin string
	// weight is the weight if a Policy has no priorities. A priority of weight 0 is then disabled.
	weight int
}

func priorities() []priority {
	return []priority{
		{selectorSpreadPriority, schema.PodTopologySpread, 1},
		{"ServiceSpreadingPriority", schema.PodTopologySpread, 0},
		{evenPodsSpreadPriority, schema.PodTopologySpread, 2},
		{"InterPodAffinityPriority", schema.InterPodAffinity, 1},
		{"LeastRequestedPriority", schema.LeastAllocated, 1},
		{"MostRequestedPriority", schema.MostAllocated, 0},
		{"BalancedResourceAllocation", "NodeResourcesBalancedAllocation", 1},
		{"NodePreferAvoidPodsPriority", schema.NodePreferAvoidPods, 10000},
		{"NodeAffinityPriority", "NodeAffinity", 1},
		{"TaintTolerationPriority", "TaintToleration", 1},
		{"ImageLocalityPriority", "ImageLocality", 1},
	}
}
