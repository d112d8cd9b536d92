package versions

import "slices"

// names are names that exist for the minors from ≤ minor < before.
type names struct {
	from, before int
	list         []string
}

// plugins are the in-tree plugins (pkg/scheduler/framework/plugins/registry.go).
func plugins() []names {
	return []names{
		{20, onward, []string{
			"DefaultBinder", "DefaultPreemption", "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeName",
			"NodePorts", "NodeResourcesBalancedAllocation", "NodeResourcesFit", "NodeUnschedulable", "NodeVolumeLimits",
			"PodTopologySpread", "PrioritySort", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
		}},
		{20, 23, []string{
			"NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated",
			"RequestedToCapacityRatio", "ServiceAffinity",
		}},
		{20, 29, []string{"SelectorSpread"}},
		{20, 32, []string{"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"}},
		{26, onward, []string{"DynamicResources", "SchedulingGates"}},
		{35, onward, []string{"GangScheduling", "NodeDeclaredFeatures"}},
		{36, onward, []string{"PodGroupPodsCount", "TopologyPlacementGenerator"}},
		{37, onward, []string{"DeferredPodScheduling"}},
	}
}

// flags are the flags of kube-scheduler that not every supported release has
// (cmd/kube-scheduler/app/options and what it takes from apiserver and
// component-base).
func flags() []names {
	return []names{
		{20, 22, []string{"algorithm-provider", "hard-pod-affinity-symmetric-weight", "scheduler-name"}},
		{20, 23, []string{"policy-config-file", "policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config"}},
		{20, 24, []string{"address", "experimental-logging-sanitization", "port"}},
		{20, 26, []string{
			"add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size",
			"logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold",
		}},
		{20, 28, []string{"lock-object-name", "lock-object-namespace"}},
	}
}

// namesAt returns the names that exist at a minor, sorted.
func namesAt(table []names, minor int) []string {
	return collect(table, func(n names) bool { return n.from <= minor && minor < n.before })
}

// removedAt returns the names that are gone at a minor, sorted.
func removedAt(table []names, minor int) []string {
	return collect(table, func(n names) bool { return n.before <= minor })
}

func collect(table []names, holds func(names) bool) []string {
	var found []string
	for _, row := range table {
		if holds(row) {
			found = append(found, row.list...)
		}
	}
	slices.Sort(found)
	return found
}
