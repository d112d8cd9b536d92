package profiles

// nodeAffinity and spreadConstraint are types of the core API that arguments of
// plugins hold (staging/src/k8s.io/api/core/v1/types.go).
func nodeAffinity() object {
	return object{fields: []field{
		{name: "requiredDuringSchedulingIgnoredDuringExecution", kind: kindObject, object: nodeSelector},
		{name: "preferredDuringSchedulingIgnoredDuringExecution", kind: kindObjects, object: preferredTerm},
	}}
}

func nodeSelector() object {
	return object{fields: []field{{name: "nodeSelectorTerms", kind: kindObjects, object: selectorTerm}}}
}

func preferredTerm() object {
	return object{fields: []field{
		{name: "weight", kind: kindInt},
		{name: "preference", kind: kindObject, object: selectorTerm},
	}}
}

func selectorTerm() object {
	return object{fields: []field{
		{name: "matchExpressions", kind: kindObjects, object: requirement},
		{name: "matchFields", kind: kindObjects, object: requirement},
	}}
}

func requirement() object {
	return object{fields: []field{
		{name: "key", kind: kindString},
		{name: "operator", kind: kindString},
		{name: "values", kind: kindStrings},
	}}
}

func spreadConstraint() object {
	return object{fields: []field{
		{name: "maxSkew", kind: kindInt},
		{name: "topologyKey", kind: kindString},
		{name: "whenUnsatisfiable", kind: kindString},
		{name: "labelSelector", kind: kindAny},
		{name: "minDomains", kind: kindInt, since: 24},
		{name: "nodeAffinityPolicy", kind: kindString, since: 25},
		{name: "nodeTaintsPolicy", kind: kindString, since: 25},
		{name: "matchLabelKeys", kind: kindStrings, since: 25},
	}}
}
