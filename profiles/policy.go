package profiles

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// wish is a plugin that a Policy has at work: as a filter, or with a weight.
type wish struct {
	plugin string
	weight int
	// source is the predicate or priority that asks for it; nil: a default does.
	source *yaml.Node
}

// policyReading is what the predicates and priorities of a Policy come to.
type policyReading struct {
	*report
	// from is the config API of the configuration that the Policy becomes.
	from            api
	filters, scores []wish
	// labels are the arguments of NodeLabel and ServiceAffinity, by plugin and name.
	labels map[string]map[string][]string
	ratio  *yaml.Node
	// listed says that the default constraints of PodTopologySpread do not count.
	listed bool
}

func newPolicyReading(r *report) *policyReading {
	from, _ := apiNamed("v1beta1")
	return &policyReading{report: r, from: from.of(22), labels: map[string]map[string][]string{}}
}

// convertPolicy makes a configuration of v1beta1 out of a Policy, whose only profile
// says what the Policy does (createFromPolicy in pkg/scheduler/factory.go, 1.22).
// The conversion to the target is that of any other document then.
func convertPolicy(doc *document, r *report, schedulerName, target string) {
	p := newPolicyReading(r)
	doc.api = p.from
	old := doc.root
	if doc.flow {
		blockStyle(old)
	}
	p.readPredicates(get(old, "predicates"))
	p.readPriorities(get(old, "priorities"))

	versionKey, version := lookup(old, "apiVersion")
	kindKey, kind := lookup(old, "kind")
	r.note(kind, "the Policy becomes a %s of %s: predicates become plugins that filter, priorities plugins that score", configKind, target)
	version.Value, kind.Value = p.from.version(), configKind
	only := mapping()
	if schedulerName != "" {
		put(only, "schedulerName", str(schedulerName))
	}
	put(only, "plugins", p.plugins())
	p.pluginConfig(only, get(old, "hardPodAffinitySymmetricWeight"))
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{versionKey, version, kindKey, kind}}
	put(root, "profiles", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{only}})
	if key, extenders := lookup(old, "extenders"); key != nil {
		p.legacyExtenders(extenders)
		root.Content = append(root.Content, key, extenders)
	}
	if key, value := lookup(old, "alwaysCheckAllPredicates"); isTrue(value) {
		r.loss(key, "leave it out", "alwaysCheckAllPredicates has no successor: a node that one filter rejects is not shown to the others")
	}
	doc.root = root
}

// policyNames refuses predicates and priorities that no release knows.
func policyNames(doc *document) problems {
	p := newPolicyReading(newReport(doc, false))
	p.readPredicates(get(doc.root, "predicates"))
	p.readPriorities(get(doc.root, "priorities"))
	return p.problems
}

// readPredicates finds the filters.
func (p *policyReading) readPredicates(given *yaml.Node) {
	for _, known := range predicates() {
		if known.always || known.byDefault && isNull(given) {
			p.filter(known.plugins, nil)
		}
	}
	for _, e := range items(given) {
		name, argument := text(get(e, "name")), get(e, "argument")
		i := slices.IndexFunc(predicates(), func(known predicate) bool { return known.name == name })
		affinity, presence := get(argument, "serviceAffinity"), get(argument, "labelsPresence")
		switch {
		case i >= 0:
			p.ignoredArgument(e)
			p.filter(predicates()[i].plugins, e)
		case affinity != nil:
			p.label(serviceAffinity, "affinityLabels", get(affinity, "labels"))
			p.filter([]string{serviceAffinity}, e)
		case presence != nil:
			field := "absentLabels"
			if isTrue(get(presence, "presence")) {
				field = "presentLabels"
			}
			p.label(nodeLabel, field, get(presence, "labels"))
			p.filter([]string{nodeLabel}, e)
		default:
			var names []string
			for _, known := range predicates() {
				names = append(names, known.name)
			}
			p.unknown(e, "predicate", name, names)
		}
	}
}

// readPriorities finds what scores, and with which weights. Where two name one
// plugin, the last counts, but for the spreading of pods.
func (p *policyReading) readPriorities(given *yaml.Node) {
	byName := map[string]wish{}
	for _, known := range priorities() {
		if isNull(given) && known.weight > 0 {
			byName[known.name] = wish{known.plugin, known.weight, nil}
		}
	}
	for _, e := range items(given) {
		name, weight := text(get(e, "name")), number(get(e, "weight"))
		if name == equalPriority {
			p.note(e, "%s left out: it scores all nodes alike", name)
			continue
		}
		i := slices.IndexFunc(priorities(), func(known priority) bool { return known.name == name })
		if i < 0 {
			p.customPriority(e, name, weight)
			continue
		}
		p.ignoredArgument(e)
		if name == "ServiceSpreadingPriority" {
			name = selectorSpreadPriority
		}
		byName[name] = wish{priorities()[i].plugin, weight, e}
	}
	selector, even := byName[selectorSpreadPriority], byName[evenPodsSpreadPriority]
	if even.plugin != "" {
		p.listed = selector.plugin == ""
		delete(byName, selectorSpreadPriority) // the plugin takes the weight of the first of them by name
	}
	for _, known := range priorities() {
		if w, ok := byName[known.name]; ok {
			p.scores = append(p.scores, w)
		}
	}
}

// customPriority reads a priority that its argument describes.
func (p *policyReading) customPriority(e *yaml.Node, name string, weight int) {
	argument := get(e, "argument")
	spread, label, ratio := get(argument, "serviceAntiAffinity"), get(argument, "labelPreference"), get(argument, "requestedToCapacityRatioArguments")
	switch {
	case spread != nil:
		p.weighted(serviceAffinity, "antiAffinityLabelsPreference", get(spread, "label"), weight, e)
	case label != nil:
		field := "absentLabelsPreference"
		if isTrue(get(label, "presence")) {
			field = "presentLabelsPreference"
		}
		p.weighted(nodeLabel, field, get(label, "label"), weight, e)
	case ratio != nil && p.ratio != nil:
		p.refuse(e, "keep one of them", "a second priority of the kind requestedToCapacityRatioArguments, where one is allowed")
	case ratio != nil:
		p.ratio = ratio
		p.scores = append(p.scores, wish{capacityRatio, weight, e})
	default:
		var names []string
		for _, known := range priorities() {
			names = append(names, known.name)
		}
		p.unknown(e, "priority", name, names)
	}
}

// weighted adds a label to what a plugin scores. Each label has the weight of its
// priority, which has to be the same for all of them.
func (p *policyReading) weighted(plugin, field string, label *yaml.Node, weight int, e *yaml.Node) {
	p.label(plugin, field, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{label}})
	i := slices.IndexFunc(p.scores, func(w wish) bool { return w.plugin == plugin })
	if i < 0 {
		p.scores = append(p.scores, wish{plugin, weight, e})
		return
	}
	if first := number(get(p.scores[i].source, "weight")); first != weight {
		p.refuse(e, "give them the same weight", "weight %d, where the first priority of its kind has %d", weight, first)
	}
	p.scores[i].weight += weight
}

func (p *policyReading) unknown(e *yaml.Node, what, name string, names []string) {
	try := "remove it, or give its argument"
	if meant := nearest(name, names); meant != "" {
		try = "did you mean " + meant + "?"
	}
	p.refuse(get(e, "name"), try, "%s %q is not known, and has no argument that says what it is", what, name)
}

func (p *policyReading) ignoredArgument(e *yaml.Node) {
	if key, argument := lookup(e, "argument"); !isNull(argument) {
		p.note(key, "the argument of %s left out: it counts for names of one's own only, so it never was in effect", text(get(e, "name")))
	}
}

func (p *policyReading) filter(plugins []string, source *yaml.Node) {
	for _, name := range plugins {
		i := slices.IndexFunc(p.filters, func(w wish) bool { return w.plugin == name })
		if i < 0 {
			p.filters = append(p.filters, wish{plugin: name, source: source})
		} else if p.filters[i].source == nil {
			p.filters[i].source = source
		}
	}
}

func (p *policyReading) label(plugin, field string, labels *yaml.Node) {
	if p.labels[plugin] == nil {
		p.labels[plugin] = map[string][]string{}
	}
	for _, l := range items(labels) {
		p.labels[plugin][field] = append(p.labels[plugin][field], text(l))
	}
}

// legacyExtenders spells the extenders' fields as configurations do.
func (p *policyReading) legacyExtenders(extenders *yaml.Node) {
	for _, e := range items(extenders) {
		if key, _ := lookup(e, "enableHttps"); key != nil {
			key.Value = "enableHTTPS"
		}
		if key, value := lookup(e, "httpTimeout"); !isNull(value) {
			nanoseconds, _ := strconv.ParseInt(value.Value, 10, 64)
			put(e, "httpTimeout", str(time.Duration(nanoseconds).String()))
			p.note(key, "httpTimeout %s becomes %s: a Policy counts nanoseconds", value.Value, time.Duration(nanoseconds))
		}
	}
}
