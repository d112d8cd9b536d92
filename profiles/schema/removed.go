package schema

import "slices"

// Removed is a plugin that was removed, and its replacement.
type Removed struct {
	Name string
	// Successor is the plugin that replaces it. It is empty if no plugin does.
	Successor string
	// Why is the reason; Try is a remedy if no plugin replaces it.
	Why, Try string
}

// RemovedPlugins are the plugins that left the registry
// (pkg/scheduler/framework/plugins/registry.go), except for plugins that became strategies of
// NodeResourcesFit: see Strategies.
func RemovedPlugins() []Removed {
	volumes := func(name string) Removed {
		return Removed{Name: name, Successor: "NodeVolumeLimits",
			Why: "a CSI driver handles such volumes, and NodeVolumeLimits checks its limits"}
	}
	return []Removed{
		{Name: "SelectorSpread", Successor: PodTopologySpread,
			Why: "PodTopologySpread spreads the pods of a service or set over nodes and zones by default"},
		volumes("EBSLimits"), volumes("GCEPDLimits"), volumes("AzureDiskLimits"), volumes("CinderLimits"),
		{Name: NodePreferAvoidPods,
			Why: "the node annotation scheduler.alpha.kubernetes.io/preferAvoidPods is no longer read",
			Try: "taint such nodes with the effect PreferNoSchedule, and remove the line"},
		{Name: NodeLabel, Why: "it was removed in 1.23 without a successor",
			Try: "use NodeAffinity: args.addedAffinity in pluginConfig (`pmk-sched profile show` prints a complete file)"},
		{Name: ServiceAffinity, Why: "it was removed in 1.23 without a successor",
			Try: "use inter-pod affinity in the pods, and remove the line"},
	}
}

// RemovedNamed returns a removed plugin by name.
func RemovedNamed(name string) (Removed, bool) {
	all := RemovedPlugins()
	i := slices.IndexFunc(all, func(r Removed) bool { return r.Name == name })
	if i < 0 {
		return Removed{}, false
	}
	return all[i], true
}

// Successor returns what to use instead of a removed plugin, or "" if the plugin was not removed.
func Successor(name string) string {
	for _, s := range Strategies() {
		if s.Plugin == name {
			return "use " + ResourcesFit + " with args.scoringStrategy.type " + s.Name + " in pluginConfig"
		}
	}
	removed, _ := RemovedNamed(name)
	if removed.Successor != "" {
		return "use " + removed.Successor + ": " + removed.Why
	}
	return removed.Try
}
