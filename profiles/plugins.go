package profiles

import "slices"

// The plugins that scored nodes by their resources up to v1beta1, and the one
// that took their place with a strategy for each.
const (
	leastAllocated = "NodeResourcesLeastAllocated"
	mostAllocated  = "NodeResourcesMostAllocated"
	capacityRatio  = "RequestedToCapacityRatio"
	resourcesFit   = "NodeResourcesFit"
)

// Plugins that rules name one by one.
const (
	volumeBinding     = "VolumeBinding"
	schedulingGates   = "SchedulingGates"
	podTopologySpread = "PodTopologySpread"
	nodeLabel         = "NodeLabel"
)

// inTree is what has to be known of an in-tree plugin to carry its name from one
// config API to another. Whether a release has it at all is in versions.Rules.
type inTree struct {
	name string
	// points are the extension points that it takes part in. late has the minor of
	// those that came after 1.20.
	points []string
	late   map[string]int
	// defaults are the config APIs that enable it without being told; from minor
	// on where it is not 0.
	defaults apiSet
	minor    int
	// weights are its default weights under score, with the defaults per extension
	// point (v1beta1, v1beta2) and with those of multiPoint (v1beta3, v1).
	pointWeight, multiPointWeight int
}

// lastSurveyed is the last minor of which it is known where each plugin of
// inTreePlugins takes part.
const lastSurveyed = 37

// inTreePlugins is read from pkg/scheduler/algorithmprovider/registry.go (up to
// 1.21) and pkg/scheduler/apis/config/<api>/default_plugins.go.
func inTreePlugins() []inTree {
	return []inTree{
		{name: "PrioritySort", points: []string{"queueSort"}, defaults: inEvery},
		{name: "NodeUnschedulable", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 37}, defaults: inEvery},
		{name: "NodeName", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 37}, defaults: inEvery},
		{name: "TaintToleration", points: []string{"preFilter", "filter", "preScore", "score"}, late: map[string]int{"preFilter": 37}, defaults: inEvery, pointWeight: 1, multiPointWeight: 3},
		{name: "NodeAffinity", points: []string{"preFilter", "filter", "preScore", "score"}, late: map[string]int{"preFilter": 21, "preScore": 21}, defaults: inEvery, pointWeight: 1, multiPointWeight: 2},
		{name: "NodePorts", points: []string{"preFilter", "filter"}, defaults: inEvery},
		{name: resourcesFit, points: []string{"preFilter", "filter", "preScore", "score"}, late: map[string]int{"preScore": 27}, defaults: inEvery, pointWeight: 1, multiPointWeight: 1},
		{name: "VolumeRestrictions", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 22}, defaults: inEvery},
		{name: "EBSLimits", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 28}, defaults: inEvery},
		{name: "GCEPDLimits", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 28}, defaults: inEvery},
		{name: "NodeVolumeLimits", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 28}, defaults: inEvery},
		{name: "AzureDiskLimits", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 28}, defaults: inEvery},
		{name: volumeBinding, points: []string{"preFilter", "filter", "preScore", "score", "reserve", "preBind"}, late: map[string]int{"score": 21, "preScore": 30}, defaults: inEvery},
		{name: "VolumeZone", points: []string{"preFilter", "filter"}, late: map[string]int{"preFilter": 27}, defaults: inEvery},
		{name: "PodTopologySpread", points: []string{"preFilter", "filter", "preScore", "score"}, defaults: inEvery, pointWeight: 2, multiPointWeight: 2},
		{name: "InterPodAffinity", points: []string{"preFilter", "filter", "preScore", "score"}, defaults: inEvery, pointWeight: 1, multiPointWeight: 2},
		{name: "DefaultPreemption", points: []string{"preEnqueue", "postFilter"}, late: map[string]int{"preEnqueue": 32}, defaults: inEvery},
		{name: "NodeResourcesBalancedAllocation", points: []string{"preScore", "score"}, late: map[string]int{"preScore": 27}, defaults: inEvery, pointWeight: 1, multiPointWeight: 1},
		{name: "ImageLocality", points: []string{"score"}, defaults: inEvery, pointWeight: 1, multiPointWeight: 1},
		{name: "DefaultBinder", points: []string{"bind"}, defaults: inEvery},
		{name: schedulingGates, points: []string{"preEnqueue"}, defaults: inV1beta3 | inV1, minor: 27},

		{name: leastAllocated, points: []string{"score"}, defaults: inV1beta1, pointWeight: 1},
		{name: "NodePreferAvoidPods", points: []string{"score"}, defaults: inV1beta1, pointWeight: 10000},

		{name: mostAllocated, points: []string{"score"}},
		{name: capacityRatio, points: []string{"score"}},
		{name: "SelectorSpread", points: []string{"preScore", "score"}},
		{name: "CinderLimits", points: []string{"filter"}},
		{name: "NodeLabel", points: []string{"filter", "score"}},
		{name: "ServiceAffinity", points: []string{"preFilter", "filter", "score"}},
	}
}

// inTreeNamed returns what is known of an in-tree plugin.
func inTreeNamed(name string) (inTree, bool) {
	all := inTreePlugins()
	i := slices.IndexFunc(all, func(p inTree) bool { return p.name == name })
	if i < 0 {
		return inTree{}, false
	}
	return all[i], true
}

// takesPart says whether the plugin takes part in an extension point at a minor.
func (p inTree) takesPart(point string, minor int) bool {
	return slices.Contains(p.points, point) && (minor == 0 || minor >= p.late[point])
}

// weight returns the plugin's default weight under score in a config API.
func (p inTree) weight(a api) int {
	if a.multiPoint {
		return p.multiPointWeight
	}
	return p.pointWeight
}

// extends says whether a plugin can be enabled at an extension point, as far as
// is known.
func extends(name, point string, minor int) bool {
	if name == resourcesFit && point == "score" && minor < 22 {
		return false // three plugins of other names did that
	}
	p, known := inTreeNamed(name)
	return !known || point == multiPoint || minor > lastSurveyed || p.takesPart(point, minor)
}

// isDefault says whether a config API enables a plugin at an extension point
// without being told. NodeResourcesFit scores from v1beta2 on, VolumeBinding
// where multiPoint spreads it.
func isDefault(a api, point, name string) bool {
	p, ok := inTreeNamed(name)
	switch {
	case !ok || !p.defaults.has(a.set) || a.minor != 0 && a.minor < p.minor:
		return false
	case point == multiPoint:
		return a.multiPoint
	case name == resourcesFit && point == "score":
		return a.set != inV1beta1
	case name == volumeBinding && (point == "preScore" || point == "score"):
		return a.multiPoint
	}
	return p.takesPart(point, a.minor)
}

// fate is what becomes of a plugin that a release no longer has.
type fate struct {
	name string
	// successor takes its place; empty: nothing does.
	successor string
	why       string
	try       string
}

// fates covers what left the registry (pkg/scheduler/framework/plugins/registry.go),
// but for the plugins that became strategies of NodeResourcesFit: see scoring.
func fates() []fate {
	volumes := func(name string) fate {
		return fate{name: name, successor: "NodeVolumeLimits", why: "volumes of that kind are handled by their CSI driver, whose limits NodeVolumeLimits counts"}
	}
	return []fate{
		{name: "SelectorSpread", successor: "PodTopologySpread", why: "PodTopologySpread spreads the pods of a service or set over hosts and zones by default"},
		volumes("EBSLimits"), volumes("GCEPDLimits"), volumes("AzureDiskLimits"), volumes("CinderLimits"),
		{name: "NodePreferAvoidPods", why: "nothing reads the node annotation scheduler.alpha.kubernetes.io/preferAvoidPods any more",
			try: "taint such nodes with the effect PreferNoSchedule, and remove the line"},
		{name: "NodeLabel", why: "it was removed in 1.23 without a successor",
			try: "say it with NodeAffinity: args.addedAffinity in pluginConfig (`pmk-sched profile show` prints a whole file)"},
		{name: "ServiceAffinity", why: "it was removed in 1.23 without a successor",
			try: "say it with inter-pod affinity in the pods, and remove the line"},
	}
}

func fateOf(name string) (fate, bool) {
	for _, f := range fates() {
		if f.name == name {
			return f, true
		}
	}
	return fate{}, false
}
