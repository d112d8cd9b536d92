package schema

// nodeAffinity and spreadConstraint are types of the core API that plugin arguments contain
// (staging/src/k8s.io/api/core/v1/types.go).
func nodeAffinity() Object {
	return Object{Fields: []Field{
		{Name: "requiredDuringSchedulingIgnoredDuringExecution", Kind: kindObject, Object: nodeSelector},
		{Name: "preferredDuringSchedulingIgnoredDuringExecution", Kind: KindObjects, Object: preferredTerm},
	}}
}

func nodeSelector() Object {
	return Object{Fields: []Field{{Name: "nodeSelectorTerms", Kind: KindObjects, Object: selectorTerm}}}
}

func preferredTerm() Object {
	return Object{Fields: []Field{
		{Name: "weight", Kind: kindInt},
		{Name: "preference", Kind: kindObject, Object: selectorTerm},
	}}
}

func selectorTerm() Object {
	return Object{Fields: []Field{
		{Name: "matchExpressions", Kind: KindObjects, Object: requirement},
		{Name: "matchFields", Kind: KindObjects, Object: requirement},
	}}
}

func requirement() Object {
	return Object{Fields: []Field{
		{Name: "key", Kind: kindString},
		{Name: "operator", Kind: kindString},
		{Name: "values", Kind: kindStrings},
	}}
}

func spreadConstraint() Object {
	return Object{Fields: []Field{
		{Name: "maxSkew", Kind: kindInt},
		{Name: "topologyKey", Kind: kindString},
		{Name: "whenUnsatisfiable", Kind: kindString},
		{Name: "labelSelector", Kind: kindAny},
		{Name: "minDomains", Kind: kindInt, Since: 24},
		{Name: "nodeAffinityPolicy", Kind: kindString, Since: 25},
		{Name: "nodeTaintsPolicy", Kind: kindString, Since: 25},
		{Name: "matchLabelKeys", Kind: kindStrings, Since: 25},
	}}
}
