package profiles

// argsOf returns the arguments that an in-tree plugin takes, and false where it
// takes none or is not in-tree (staging/src/k8s.io/kube-scheduler/config/<api>/
// types_pluginargs.go). Arguments of other plugins are carried as they are.
func argsOf(plugin string) (args, bool) {
	for _, a := range argsObjects() {
		if a.plugin == plugin {
			return a, true
		}
	}
	return args{}, false
}

// args are the arguments of one plugin: the fields of its kind <plugin>Args.
type args struct {
	plugin string
	// apis are the config APIs that have the kind; since is its first minor.
	apis   apiSet
	since  int
	fields []field
}

// object returns the arguments' fields with the two that every kind has.
func (a args) object() object {
	head := []field{{name: "apiVersion", kind: kindString}, {name: "kind", kind: kindString}}
	return object{fields: append(head, a.fields...)}
}

// in says whether a config API has the kind: in any release, or as one minor
// reads it.
func (a args) in(target api) bool {
	return (a.apis == 0 || a.apis.has(target.set)) && (target.minor == 0 || target.minor >= a.since)
}

func argsObjects() []args {
	resources := field{name: "resources", kind: kindObjects, object: resourceSpec}
	shape := field{name: "shape", kind: kindObjects, object: shapePoint}
	return []args{
		{plugin: "DefaultPreemption", fields: []field{
			{name: "minCandidateNodesPercentage", kind: kindInt, bounded: true, most: 100},
			{name: "minCandidateNodesAbsolute", kind: kindInt, bounded: true},
		}},
		{plugin: "DynamicResources", apis: inV1, since: 34, fields: []field{
			{name: "filterTimeout", kind: kindDuration},
			{name: "bindingTimeout", kind: kindDuration, since: 35, lost: "there is no such time-out before 1.35"},
		}},
		{plugin: "InterPodAffinity", fields: []field{
			{name: "hardPodAffinityWeight", kind: kindInt, bounded: true, most: 100},
			{name: "ignorePreferredTermsOfExistingPods", kind: kindBool, apis: inV1beta2 | inV1beta3 | inV1, since: 27,
				lost: "preferred terms of running pods count again, as they always did before 1.27"},
		}},
		{plugin: "NodeAffinity", fields: []field{{name: "addedAffinity", kind: kindObject, object: nodeAffinity}}},
		{plugin: "NodeLabel", apis: inV1beta1, fields: []field{
			{name: "presentLabels", kind: kindStrings}, {name: "absentLabels", kind: kindStrings},
			{name: "presentLabelsPreference", kind: kindStrings}, {name: "absentLabelsPreference", kind: kindStrings},
		}},
		{plugin: "NodeResourcesBalancedAllocation", since: 22, fields: []field{resources}},
		{plugin: "NodeResourcesFit", fields: []field{
			{name: "ignoredResources", kind: kindStrings},
			{name: "ignoredResourceGroups", kind: kindStrings},
			{name: "scoringStrategy", kind: kindObject, object: scoringStrategy, since: 22},
		}},
		{plugin: leastAllocated, apis: inV1beta1, fields: []field{resources}},
		{plugin: mostAllocated, apis: inV1beta1, fields: []field{resources}},
		{plugin: "PodTopologySpread", fields: []field{
			{name: "defaultConstraints", kind: kindObjects, object: spreadConstraint},
			{name: "defaultingType", kind: kindString},
		}},
		{plugin: capacityRatio, apis: inV1beta1, fields: []field{shape, resources}},
		{plugin: "ServiceAffinity", apis: inV1beta1, fields: []field{
			{name: "affinityLabels", kind: kindStrings}, {name: "antiAffinityLabelsPreference", kind: kindStrings},
		}},
		{plugin: "VolumeBinding", fields: []field{
			{name: "bindTimeoutSeconds", kind: kindInt, bounded: true},
			{name: "shape", kind: kindObjects, object: shapePoint, since: 22,
				lost: "it is read only with the feature gate VolumeCapacityPriority, which is not there yet"},
		}},
	}
}

func scoringStrategy() object {
	return object{fields: []field{
		{name: "type", kind: kindString},
		{name: "resources", kind: kindObjects, object: resourceSpec},
		{name: "requestedToCapacityRatio", kind: kindObject, object: func() object {
			return object{fields: []field{{name: "shape", kind: kindObjects, object: shapePoint}}}
		}},
	}}
}

func resourceSpec() object {
	return object{fields: []field{
		{name: "name", kind: kindString},
		{name: "weight", kind: kindInt, bounded: true, most: 100},
	}}
}

func shapePoint() object {
	return object{fields: []field{
		{name: "utilization", kind: kindInt, bounded: true, most: 100},
		{name: "score", kind: kindInt, bounded: true, most: 10},
	}}
}
