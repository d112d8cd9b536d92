package profiles

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// pluginArgs is what a release asks of the arguments of its plugins beyond their
// form (pkg/scheduler/apis/config/validation/validation_pluginargs.go).
func (j *judgement) pluginArgs(p *yaml.Node) {
	seen := map[string]bool{}
	for _, e := range items(get(p, "pluginConfig")) {
		name, args := text(get(e, "name")), get(e, "args")
		if seen[name] {
			j.add(e, "keep one of the two", "pluginConfig has two entries for %s", name)
		}
		seen[name] = true
		known, ok := argsOf(name)
		if !ok || !known.in(j.api) || !isMapping(args) {
			continue
		}
		switch name {
		case "DefaultPreemption":
			percentage, absolute := get(args, "minCandidateNodesPercentage"), get(args, "minCandidateNodesAbsolute")
			if text(percentage) == "0" && text(absolute) == "0" {
				j.add(percentage, "", "minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0")
			}
		case "NodeResourcesBalancedAllocation":
			j.balanced(get(args, "resources"))
		case resourcesFit:
			j.strategy(get(args, "scoringStrategy"))
		case leastAllocated, mostAllocated:
			j.weights(get(args, "resources"), 1)
		case capacityRatio:
			j.shape(args, get(args, "shape"))
		case podTopologySpread:
			j.spread(args)
		case nodeLabel:
			j.opposite(get(args, "presentLabels"), get(args, "absentLabels"))
			j.opposite(get(args, "presentLabelsPreference"), get(args, "absentLabelsPreference"))
		case volumeBinding:
			if shape := get(args, "shape"); !isNull(shape) {
				j.add(shape, "leave it out", "shape counts with a feature gate only, which is off")
			}
		}
	}
}

// opposite refuses a label that has to be there and not to be there.
func (j *judgement) opposite(present, absent *yaml.Node) {
	for _, p := range items(present) {
		if slices.ContainsFunc(items(absent), func(a *yaml.Node) bool { return text(a) == text(p) }) {
			j.add(p, "", "label %s is asked for and ruled out", text(p))
		}
	}
}

func (j *judgement) strategy(s *yaml.Node) {
	if s == nil {
		return
	}
	of := get(s, "type")
	if !slices.ContainsFunc(strategies(), func(known strategy) bool { return known.name == text(of) }) {
		j.add(s, "use LeastAllocated, MostAllocated or RequestedToCapacityRatio", "scoring strategy %q is not known", text(of))
	}
	j.weights(get(s, "resources"), 0)
	if ratio := get(s, "requestedToCapacityRatio"); ratio != nil {
		j.shape(ratio, get(ratio, "shape"))
	} else if text(of) == "RequestedToCapacityRatio" {
		j.add(s, "give requestedToCapacityRatio.shape", "scoring strategy RequestedToCapacityRatio has no shape")
	}
}

// weights bounds the weights of resources; a missing one counts 1 where least is 0.
func (j *judgement) weights(resources *yaml.Node, least int) {
	for _, r := range items(resources) {
		if w := number(get(r, "weight")); w < least || w > 100 {
			j.add(r, "give a weight from 1 to 100", "weight %d of resource %s", w, text(get(r, "name")))
		}
	}
}

func (j *judgement) balanced(resources *yaml.Node) {
	seen := map[string]bool{}
	for _, r := range items(resources) {
		name := text(get(r, "name"))
		if w := get(r, "weight"); number(w) > 1 {
			j.add(w, "leave it out", "NodeResourcesBalancedAllocation takes no weights other than 1")
		}
		if seen[name] {
			j.add(r, "name it once", "resource %s is named twice", name)
		}
		seen[name] = true
	}
}

func (j *judgement) shape(where, points *yaml.Node) {
	if len(items(points)) == 0 {
		j.add(where, "give a point such as {utilization: 0, score: 0}", "shape has no points")
	}
	last := -1
	for _, point := range items(points) {
		u := number(get(point, "utilization"))
		if u <= last {
			j.add(point, "sort the points", "shape: utilization %d does not come after %d", u, last)
		}
		last = u
	}
}

func (j *judgement) spread(args *yaml.Node) {
	constraints, kind := items(get(args, "defaultConstraints")), text(get(args, "defaultingType"))
	if kind != "" && kind != "List" && kind != "System" {
		j.add(get(args, "defaultingType"), "use List or System", "defaultingType %q is not known", kind)
	}
	if len(constraints) > 0 && (kind == "System" || kind == "" && j.api.set != inV1beta1) {
		j.add(get(args, "defaultConstraints"), "write defaultingType: List", "defaultConstraints count with defaultingType List only")
	}
	type pair struct{ topologyKey, whenUnsatisfiable string }
	seen := map[pair]bool{}
	for _, c := range constraints {
		this := pair{text(get(c, "topologyKey")), text(get(c, "whenUnsatisfiable"))}
		switch {
		case number(get(c, "maxSkew")) <= 0:
			j.add(c, "give a maxSkew of 1 or more", "a default constraint has no positive maxSkew")
		case this.topologyKey == "":
			j.add(c, "", "a default constraint has no topologyKey")
		case this.whenUnsatisfiable != "DoNotSchedule" && this.whenUnsatisfiable != "ScheduleAnyway":
			j.add(c, "use DoNotSchedule or ScheduleAnyway", "a default constraint has whenUnsatisfiable %q", this.whenUnsatisfiable)
		case !isNull(get(c, "labelSelector")):
			j.add(c, "leave it out: it is that of each pod's service or set", "a default constraint has a labelSelector")
		case seen[this]:
			j.add(c, "keep one of them", "two default constraints are about %s and %s", this.topologyKey, this.whenUnsatisfiable)
		}
		seen[this] = true
	}
}
