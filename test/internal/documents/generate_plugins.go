package documents

import "slices"

// atPoint are default plugins of an extension point that a configuration may disable or enable
// again.
type atPoint struct {
	point string
	names []string
}

func defaults() []atPoint {
	return []atPoint{
		{"preFilter", []string{
			"NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding", "NodeAffinity"}},
		{"filter", []string{
			"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
			"VolumeRestrictions",
			"EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding", "VolumeZone",
			"PodTopologySpread",
			"InterPodAffinity",
		}},
		{"postFilter", []string{"DefaultPreemption"}},
		{"preScore", []string{"InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity"}},
		{"score", []string{
			"NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeAffinity", "PodTopologySpread",
			"TaintToleration"}},
		{"reserve", []string{"VolumeBinding"}},
		{"preBind", []string{"VolumeBinding"}},
	}
}

// plugins returns plugin sets, and the arguments of their scoring.
func (g *generator) plugins() (object, []object) {
	sets := object{}
	for _, at := range defaults() {
		if set := g.set(at); len(set) > 0 {
			sets[at.point] = set
		}
	}
	configs := g.scoring(sets)
	if (g.api == "v1beta3" || g.api == "v1") && g.chance(6) {
		sets["multiPoint"] = g.multiPoint()
	}
	return sets, configs
}

// set is one plugin set: nothing, some defaults disabled, some enabled again, or all disabled and
// some enabled.
func (g *generator) set(at atPoint) object {
	set := object{}
	switch g.IntN(5) {
	case 0:
		set["disabled"] = named(g.choose(at.names, 3))
	case 1:
		again := g.choose(at.names, 3)
		set["enabled"] = g.weighed(at.point, again)
		if g.api == "v1beta1" {
			// Enabled twice, a plugin would run twice, and the scheduler refuse to start.
			set["disabled"] = named(again)
		}
	case 2:
		set["disabled"] = named([]string{"*"})
		set["enabled"] = g.weighed(at.point, g.choose(at.names, 6))
	}
	return set
}

func named(names []string) []object {
	list := []object{}
	for _, name := range names {
		list = append(list, object{"name": name})
	}
	return list
}

func (g *generator) weighed(point string, names []string) []object {
	list := named(names)
	for _, e := range list {
		if (point == "score" || point == "multiPoint") && g.chance(7) {
			e["weight"] = g.between(1, 20)
		}
	}
	return list
}

// multiPoint enables plugins again at all their extension points, or disables them at all.
func (g *generator) multiPoint() object {
	names := []string{
		"ImageLocality", "NodeVolumeLimits", "InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity",
		"NodeResourcesFit", "DefaultPreemption", "VolumeBinding",
	}
	if g.chance(2) {
		again := append(g.choose(names, 5), "PrioritySort", "DefaultBinder")
		if g.minor >= 27 {
			again = append(again, "SchedulingGates") // v1beta2 cannot switch it off
		}
		return object{"disabled": named([]string{"*"}), "enabled": g.weighed("multiPoint", again)}
	}
	enabled := g.choose(names, 3)
	rest := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(enabled, name) })
	return object{"enabled": g.weighed("multiPoint", enabled), "disabled": named(g.choose(rest, 2))}
}

// scoring chooses how nodes are scored by their resources: three plugins in v1beta1, one plugin's
// strategy after.
func (g *generator) scoring(sets object) []object {
	if g.chance(3) {
		return nil
	}
	if g.api != "v1beta1" {
		return []object{config("NodeResourcesFit", object{
			"ignoredResources": []string{"example.com/dongle"}, "scoringStrategy": g.strategy(),
		})}
	}
	name := []string{"NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"}[g.IntN(3)]
	arguments := object{"resources": g.resources()}
	if name == "RequestedToCapacityRatio" {
		arguments["shape"] = g.shape()
	}
	set, _ := sets["score"].(object)
	if set == nil {
		set = object{}
	}
	enabled, _ := set["enabled"].([]object)
	disabled, _ := set["disabled"].([]object)
	set["enabled"] = append(enabled, g.weighed("score", []string{name})...)
	if !slices.ContainsFunc(disabled, func(o object) bool { return o["name"] == "*" }) {
		set["disabled"] = append(disabled, object{"name": "NodeResourcesLeastAllocated"})
	}
	sets["score"] = set
	return []object{config(name, arguments)}
}

func config(plugin string, arguments object) object {
	return object{"name": plugin, "args": arguments}
}

func (g *generator) strategy() object {
	name := []string{"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"}[g.IntN(3)]
	strategy := object{"type": name, "resources": g.resources()}
	if name == "RequestedToCapacityRatio" {
		strategy["requestedToCapacityRatio"] = object{"shape": g.shape()}
	}
	return strategy
}

func (g *generator) resources() []object {
	list := []object{{"name": "cpu", "weight": g.between(1, 100)}}
	for _, name := range g.choose([]string{"memory", "example.com/gpu", "ephemeral-storage"}, 5) {
		list = append(list, object{"name": name, "weight": g.between(1, 100)})
	}
	return list
}

func (g *generator) shape() []object {
	list := []object{}
	for utilization := 0; utilization <= 100; utilization += g.between(20, 60) {
		list = append(list, object{"utilization": utilization, "score": g.between(0, 10)})
	}
	return list
}

// arguments returns arguments of the other in-tree plugins, each with a kind in every config API.
func (g *generator) arguments() []object {
	var configs []object
	add := func(plugin string, arguments object) {
		if g.chance(4) {
			configs = append(configs, config(plugin, arguments))
		}
	}
	add("DefaultPreemption", object{"minCandidateNodesPercentage": g.between(1, 100),
		"minCandidateNodesAbsolute": g.between(1, 500)})
	add("InterPodAffinity", object{"hardPodAffinityWeight": g.between(0, 100)})
	add("NodeAffinity", object{"addedAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": []object{{"matchExpressions": []object{{"key": "pool", "operator": "In",
			"values": []string{"a", "b"}}}}},
	}}})
	add("PodTopologySpread", object{"defaultingType": "List", "defaultConstraints": []object{
		{"maxSkew": g.between(1, 9), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
	}})
	add("PodTopologySpread", object{"defaultingType": "System"})
	add("VolumeBinding", object{"bindTimeoutSeconds": g.between(1, 999)})
	if g.minor >= 22 {
		add("NodeResourcesBalancedAllocation",
			object{"resources": []object{{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 1}}})
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(configs, func(c object) bool {
		name := c["name"].(string)
		twice := seen[name]
		seen[name] = true
		return twice
	})
}
