package schema

import (
	"slices"
)

// The plugins of v1beta1 that score nodes by their resources, and the plugin that replaced them
// with one strategy for each.
const (
	LeastAllocated = "NodeResourcesLeastAllocated"
	MostAllocated  = "NodeResourcesMostAllocated"
	CapacityRatio  = "RequestedToCapacityRatio"
	ResourcesFit   = "NodeResourcesFit"
)

// Plugins that rules refer to.
const (
	VolumeBinding       = "VolumeBinding"
	SchedulingGates     = "SchedulingGates"
	PodTopologySpread   = "PodTopologySpread"
	NodeLabel           = "NodeLabel"
	ServiceAffinity     = "ServiceAffinity"
	NodePreferAvoidPods = "NodePreferAvoidPods"
	InterPodAffinity    = "InterPodAffinity"
	DefaultBinder       = "DefaultBinder"
)

// InTree is the data that conversion needs about an in-tree plugin. versions.Rules contains the
// releases that have it.
type InTree struct {
	Name string
	// Points are the extension points that it implements. Late is the first minor release of each
	// point that was added after 1.20.
	Points []string
	Late   map[string]int
	// Defaults are the config APIs that enable it by default, from release Minor if that is not 0.
	Defaults APISet
	Minor    int
	// PointWeight is its default score weight in v1beta1 and v1beta2, which have defaults for each
	// extension point; MultiPointWeight is its default score weight in v1beta3 and v1.
	PointWeight, MultiPointWeight int
}

// lastSurveyed is the last minor release for which the extension points in InTreePlugins are known.
const lastSurveyed = 37

// InTreePlugins returns the contents of pkg/scheduler/algorithmprovider/registry.go (up to 1.21)
// and pkg/scheduler/apis/config/<api>/default_plugins.go.
func InTreePlugins() []InTree {
	return []InTree{
		{Name: "PrioritySort", Points: []string{"queueSort"}, Defaults: inEvery},
		{Name: "NodeUnschedulable", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 37}, Defaults: inEvery},
		{Name: "NodeName", Points: []string{"preFilter", "filter"}, Late: map[string]int{"preFilter": 37}, Defaults: inEvery},
		{Name: "TaintToleration", Points: []string{"preFilter", "filter", "preScore", "score"}, Late: map[string]int{
			"preFilter": 37}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 3},
		{Name: "NodeAffinity", Points: []string{"preFilter", "filter", "preScore", "score"}, Late: map[string]int{
			"preFilter": 21, "preScore": 21}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 2},
		{Name: "NodePorts", Points: []string{"preFilter", "filter"}, Defaults: inEvery},
		{Name: ResourcesFit, Points: []string{"preFilter", "filter", "preScore", "score"}, Late: map[string]int{
			"preScore": 27}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 1},
		{Name: "VolumeRestrictions", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 22}, Defaults: inEvery},
		{Name: "EBSLimits", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 28}, Defaults: inEvery},
		{Name: "GCEPDLimits", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 28}, Defaults: inEvery},
		{Name: "NodeVolumeLimits", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 28}, Defaults: inEvery},
		{Name: "AzureDiskLimits", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 28}, Defaults: inEvery},
		{Name: VolumeBinding, Points: []string{
			"preFilter", "filter", "preScore", "score", "reserve", "preBind"}, Late: map[string]int{"score": 21, "preScore": 30},
			Defaults: inEvery},
		{Name: "VolumeZone", Points: []string{"preFilter", "filter"}, Late: map[string]int{
			"preFilter": 27}, Defaults: inEvery},
		{Name: "PodTopologySpread", Points: []string{
			"preFilter", "filter", "preScore", "score"}, Defaults: inEvery, PointWeight: 2, MultiPointWeight: 2},
		{Name: "InterPodAffinity", Points: []string{
			"preFilter", "filter", "preScore", "score"}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 2},
		{Name: "DefaultPreemption", Points: []string{"preEnqueue", "postFilter", "podGroupPostFilter"}, Late: map[string]int{
			"preEnqueue": 32, "podGroupPostFilter": 37}, Defaults: inEvery},
		{Name: "NodeResourcesBalancedAllocation", Points: []string{"preScore", "score"}, Late: map[string]int{
			"preScore": 27}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 1},
		{Name: "ImageLocality", Points: []string{"score"}, Defaults: inEvery, PointWeight: 1, MultiPointWeight: 1},
		{Name: "DefaultBinder", Points: []string{"bind"}, Defaults: inEvery},
		{Name: SchedulingGates, Points: []string{"preEnqueue"}, Defaults: inV1beta3 | InV1, Minor: 27},

		{Name: LeastAllocated, Points: []string{"score"}, Defaults: InV1beta1, PointWeight: 1},
		{Name: "NodePreferAvoidPods", Points: []string{"score"}, Defaults: InV1beta1, PointWeight: 10000},

		{Name: MostAllocated, Points: []string{"score"}},
		{Name: CapacityRatio, Points: []string{"score"}},
		{Name: "SelectorSpread", Points: []string{"preScore", "score"}},
		{Name: "CinderLimits", Points: []string{"filter"}},
		{Name: "NodeLabel", Points: []string{"filter", "score"}},
		{Name: "ServiceAffinity", Points: []string{"preFilter", "filter", "score"}},
	}
}

// InTreeNamed returns an in-tree plugin by name.
func InTreeNamed(name string) (InTree, bool) {
	all := InTreePlugins()
	i := slices.IndexFunc(all, func(p InTree) bool { return p.Name == name })
	if i < 0 {
		return InTree{}, false
	}
	return all[i], true
}

// Implements reports whether the plugin implements an extension point in a minor release.
func (p InTree) Implements(point string, minor int) bool {
	return slices.Contains(p.Points, point) && (minor == 0 || minor >= p.Late[point])
}

// Weight returns the plugin's default score weight in a config API.
func (p InTree) Weight(a API) int {
	if a.MultiPoint {
		return p.MultiPointWeight
	}
	return p.PointWeight
}
