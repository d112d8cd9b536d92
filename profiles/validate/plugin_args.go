package validate

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// pluginArgs checks the values of plugin arguments
// (pkg/scheduler/apis/config/validation/validation_pluginargs.go).
func (v *validator) pluginArgs(p *yaml.Node) {
	seen := map[string]bool{}
	for _, e := range node.Items(p, "pluginConfig") {
		name, args := node.Text(e, "name"), node.Get(e, "args")
		if seen[name] {
			v.add(e, "remove one of them", "pluginConfig has two entries for %s", name)
		}
		seen[name] = true
		known, ok := schema.KnownArgs(name)
		if !ok || !known.In(v.api) || !node.IsMapping(args) || v.skipsArgs(p, name) {
			continue
		}
		switch name {
		case "DefaultPreemption":
			percentage, absolute := node.Get(args, "minCandidateNodesPercentage"), node.Get(args, "minCandidateNodesAbsolute")
			if !node.IsNull(percentage) && !node.IsNull(absolute) && node.Number(percentage) == 0 && node.Number(absolute) == 0 {
				v.add(percentage, "", "minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0")
			}
		case "NodeResourcesBalancedAllocation":
			v.balanced(node.Get(args, "resources"))
		case schema.ResourcesFit:
			v.strategy(node.Get(args, "scoringStrategy"))
			v.ignoredResources(args)
		case schema.LeastAllocated, schema.MostAllocated:
			v.weights(node.Get(args, "resources"), 1, 100)
		case schema.CapacityRatio:
			v.shape(args, node.Get(args, "shape"))
			least := 1
			if v.Rules.FitScores { // from 1.22 a missing weight is 1
				least = 0
			}
			v.weights(node.Get(args, "resources"), least, math.MaxInt)
		case schema.PodTopologySpread:
			v.spread(args)
		case schema.NodeLabel:
			v.checkLabels(node.Get(args, "presentLabels"), node.Get(args, "absentLabels"))
			v.checkLabels(node.Get(args, "presentLabelsPreference"), node.Get(args, "absentLabelsPreference"))
		case schema.VolumeBinding:
			v.volumeShape(node.Get(args, "shape"))
		case "NodeAffinity":
			v.addedAffinity(node.Get(args, "addedAffinity"))
		case "DynamicResources":
			v.timeouts(args)
		}
	}
}

// skipsArgs reports whether the release does not check a plugin's arguments, because the profile
// does not run it: up to 1.21 for any plugin, later for NodeResourcesFit, whose name has a typing
// error in validatePluginConfig's table.
func (v *validator) skipsArgs(p *yaml.Node, name string) bool {
	return (name == schema.ResourcesFit || !v.Rules.WritesDefaultPlugins) && !v.runs(node.Get(p, "plugins"), name)
}

// volumeShape checks the shape of VolumeBinding, which a feature gate allows.
func (v *validator) volumeShape(shape *yaml.Node) {
	gates := v.Release.Gates()
	allowed := gates["VolumeCapacityPriority"].Default || gates["StorageCapacityScoring"].Default
	switch {
	case node.IsNull(shape):
	case !allowed && !v.Converted:
		v.add(shape, "remove it", "shape requires a feature gate, which is disabled")
	case len(node.Items(shape)) > 0: // an empty one has a default
		v.shape(shape, shape)
	}
}

// timeouts checks the arguments of DynamicResources (ValidateDynamicResourcesArgs).
func (v *validator) timeouts(args *yaml.Node) {
	gates := v.Release.Gates()
	filter, binding := node.Get(args, "filterTimeout"), node.Get(args, "bindingTimeout")
	if d, err := time.ParseDuration(node.Text(filter)); err == nil && d < 0 {
		v.add(filter, "", "filterTimeout %s is negative", d)
	}
	switch d, err := time.ParseDuration(node.Text(binding)); {
	case node.IsNull(binding) || err != nil:
	case !v.Converted && (!gates["DRADeviceBindingConditions"].Default || !gates["DRAResourceClaimDeviceStatus"].Default):
		v.add(binding, "remove it", "bindingTimeout requires a feature gate, which is disabled")
	case d < time.Second:
		v.add(binding, "", "bindingTimeout %s is less than 1s", d)
	}
}

// addedAffinity checks the node affinity of all pods as the scheduler does.
func (v *validator) addedAffinity(affinity *yaml.Node) {
	var given corev1.NodeAffinity
	if text, err := yaml.Marshal(affinity); affinity == nil || err != nil || kubeyaml.Unmarshal(text, &given) != nil {
		return
	}
	if required := given.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		if _, err := nodeaffinity.NewNodeSelector(required, field.WithPath(field.NewPath("nodeSelector"))); err != nil {
			v.add(node.Get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "", "addedAffinity: %v", err)
		}
	}
	_, err := nodeaffinity.NewPreferredSchedulingTerms(given.PreferredDuringSchedulingIgnoredDuringExecution,
		field.WithPath(field.NewPath("preferred")))
	if err != nil {
		v.add(node.Get(affinity, "preferredDuringSchedulingIgnoredDuringExecution"), "", "addedAffinity: %v", err)
	}
}

// ignoredResources checks names of resources that NodeResourcesFit ignores.
func (v *validator) ignoredResources(args *yaml.Node) {
	for _, name := range node.Items(args, "ignoredResources") {
		v.labelName(name, "ignoredResources")
	}
	for _, group := range node.Items(args, "ignoredResourceGroups") {
		if strings.Contains(node.Text(group), "/") {
			v.add(group, "write the part before the slash", "ignoredResourceGroups: %q is not a group", node.Text(group))
			continue
		}
		v.labelName(group, "ignoredResourceGroups")
	}
}

// labelName rejects a text that is not a qualified name.
func (v *validator) labelName(n *yaml.Node, where string) {
	if wrong := validation.IsQualifiedName(node.Text(n)); len(wrong) > 0 {
		v.add(n, "", "%s: invalid name %q: %s", where, node.Text(n), wrong[0])
	}
}

// checkLabels rejects a label that has to be both present and absent.
func (v *validator) checkLabels(present, absent *yaml.Node) {
	for _, p := range node.Items(present) {
		if slices.ContainsFunc(node.Items(absent), func(a *yaml.Node) bool { return node.Text(a) == node.Text(p) }) {
			v.add(p, "", "label %s has to be both present and absent", node.Text(p))
		}
	}
}

func (v *validator) strategy(s *yaml.Node) {
	if node.IsNull(s) {
		return
	}
	of := node.Get(s, "type")
	if !slices.ContainsFunc(schema.Strategies(), func(known schema.Strategy) bool { return known.Name == node.Text(of) }) {
		v.add(s, "use LeastAllocated, MostAllocated or RequestedToCapacityRatio", "unknown scoring strategy %q",
			node.Text(of))
	}
	v.weights(node.Get(s, "resources"), 0, 100)
	if ratio := node.Get(s, "requestedToCapacityRatio"); !node.IsNull(ratio) {
		v.ratio(of, ratio)
	} else if node.Text(of) == "RequestedToCapacityRatio" {
		v.add(s, "set requestedToCapacityRatio.shape", "scoring strategy RequestedToCapacityRatio has no shape")
	}
}

// ratio checks a strategy's shape, which only one type uses.
func (v *validator) ratio(of, ratio *yaml.Node) {
	const try = "remove it, or set type: RequestedToCapacityRatio"
	used := node.Text(of) == "RequestedToCapacityRatio"
	switch {
	case !used && v.Rules.RejectsIdleShape:
		v.add(ratio, try, "requestedToCapacityRatio requires type RequestedToCapacityRatio, got %q", node.Text(of))
		return
	case !used:
		v.warn(ratio, try, "requestedToCapacityRatio has no effect with type %s", node.Text(of))
	}
	v.shape(ratio, node.Get(ratio, "shape"))
}

// weights checks the weights of resources; a missing weight is 1 if least is 0.
func (v *validator) weights(resources *yaml.Node, least, most int) {
	for _, r := range node.Items(resources) {
		if w := node.Number(r, "weight"); w < least || w > most {
			v.add(r, "use a weight from 1 to 100", "invalid weight %d of resource %s", w, node.Text(r, "name"))
		}
	}
}

func (v *validator) balanced(resources *yaml.Node) {
	seen := map[string]bool{}
	for _, r := range node.Items(resources) {
		name := node.Text(r, "name")
		if w := node.Get(r, "weight"); node.Number(w) > 1 {
			v.add(w, "remove it", "NodeResourcesBalancedAllocation only supports weight 1")
		}
		if seen[name] {
			v.add(r, "remove one of them", "duplicate resource %s", name)
		}
		seen[name] = true
	}
}

func (v *validator) shape(where, points *yaml.Node) {
	if len(node.Items(points)) == 0 {
		v.add(where, "add a point such as {utilization: 0, score: 0}", "shape has no points")
	}
	last := -1
	for _, point := range node.Items(points) {
		u := node.Number(point, "utilization")
		if u <= last {
			v.add(point, "sort the points", "shape: utilization %d is not greater than %d", u, last)
		}
		last = u
	}
}

func (v *validator) spread(args *yaml.Node) {
	constraints, kind := node.Items(args, "defaultConstraints"), node.Text(args, "defaultingType")
	if kind != "" && kind != "List" && kind != "System" {
		v.add(node.Get(args, "defaultingType"), "use List or System", "unknown defaultingType %q", kind)
	}
	if len(constraints) > 0 && (kind == "System" || kind == "" && v.api.Set != schema.InV1beta1) {
		v.add(node.Get(args, "defaultConstraints"), "set defaultingType: List",
			"defaultConstraints require defaultingType List")
	}
	type pair struct{ topologyKey, whenUnsatisfiable string }
	seen := map[pair]bool{}
	for _, c := range constraints {
		this := pair{node.Text(c, "topologyKey"), node.Text(c, "whenUnsatisfiable")}
		switch {
		case node.Number(c, "maxSkew") <= 0:
			v.add(c, "set maxSkew to at least 1", "a default constraint has no positive maxSkew")
		case this.topologyKey == "":
			v.add(c, "", "a default constraint has no topologyKey")
		case len(validation.IsQualifiedName(this.topologyKey)) > 0:
			v.labelName(node.Get(c, "topologyKey"), "topologyKey of a default constraint")
		case this.whenUnsatisfiable != "DoNotSchedule" && this.whenUnsatisfiable != "ScheduleAnyway":
			v.add(c, "use DoNotSchedule or ScheduleAnyway", "a default constraint has whenUnsatisfiable %q",
				this.whenUnsatisfiable)
		case !node.IsNull(c, "labelSelector"):
			v.add(c, "remove it: the selector of each pod's service or set is used", "a default constraint has a labelSelector")
		case seen[this]:
			v.add(c, "remove one of them", "duplicate default constraint for %s and %s", this.topologyKey,
				this.whenUnsatisfiable)
		}
		seen[this] = true
	}
}
