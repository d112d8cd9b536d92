// Package policy converts the legacy Policy to a configuration, and a configuration to a Policy.
package policy

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// activePlugin is a plugin that a Policy enables: as a filter, or with a weight.
type activePlugin struct {
	plugin string
	weight int
	// source is the predicate or priority that enables it. It is nil for a default.
	source *yaml.Node
}

// reader reads the predicates and priorities of a Policy.
type reader struct {
	*schema.Report
	// from is the config API of the configuration that the Policy becomes.
	from            schema.API
	filters, scores []activePlugin
	// labels are the arguments of NodeLabel and ServiceAffinity, by plugin and name.
	labels map[string]map[string][]string
	ratio  *yaml.Node
	// listed means that PodTopologySpread does not use its default constraints.
	listed bool
}

func newReader(r *schema.Report) *reader {
	from, _ := schema.APINamed("v1beta1")
	return &reader{Report: r, from: from.Of(22), labels: map[string]map[string][]string{}}
}

// Convert converts a Policy to a v1beta1 configuration with one profile (createFromPolicy in
// pkg/scheduler/factory.go, 1.22), which is then converted like any other.
func Convert(doc *schema.Document, r *schema.Report, schedulerName, target string) {
	p := newReader(r)
	doc.API = p.from
	old := doc.Root
	if doc.Flow {
		node.BlockStyle(old)
	}
	p.readPredicates(node.Get(old, "predicates"))
	p.readPriorities(node.Get(old, "priorities"))

	versionKey, version := node.Lookup(old, "apiVersion")
	kindKey, kind := node.Lookup(old, "kind")
	r.Note(kind, "the Policy becomes a %s of %s: predicates become filter plugins, priorities become score plugins",
		schema.ConfigKind, target)
	version.Value, kind.Value = p.from.GroupVersion(), schema.ConfigKind
	only := node.Mapping()
	if schedulerName != "" {
		node.Put(only, "schedulerName", node.String(schedulerName))
	}
	node.Put(only, "plugins", p.plugins())
	p.pluginConfig(only, node.Get(old, "hardPodAffinitySymmetricWeight"))
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{versionKey, version, kindKey, kind}}
	node.Put(root, "profiles", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{only}})
	if key, extenders := node.Lookup(old, "extenders"); key != nil {
		p.legacyExtenders(extenders)
		root.Content = append(root.Content, key, extenders)
	}
	if key, value := node.Lookup(old, "alwaysCheckAllPredicates"); node.IsTrue(value) {
		r.Loss(key, "remove it", "alwaysCheckAllPredicates has no successor: filters stop at the first that rejects a node")
	}
	if doc.Outer != nil {
		adopt(root, only, doc.Outer)
	}
	doc.Root = root
}

// adopt adds the fields of the configuration that names the Policy. Its plugins have no effect
// (createFromConfig in pkg/scheduler/factory.go, 1.18), except for arguments, and preemption.
func adopt(root, only, outer *yaml.Node) {
	profile := node.Items(outer, "profiles")[0]
	if name := node.Get(profile, "schedulerName"); node.IsNull(only, "schedulerName") && !node.IsNull(name) {
		node.Put(only, "schedulerName", name)
	}
	for _, e := range node.Items(profile, "pluginConfig") {
		if schema.ConfigOf(only, node.Text(e, "name")) == nil {
			all := node.List(only, "pluginConfig")
			all.Content = append(all.Content, e)
		}
	}
	for _, name := range schema.DisabledNames(node.Get(profile, "plugins"), "postFilter") {
		schema.Disable(node.Child(only, "plugins"), "postFilter", name)
	}
	for i := 0; i+1 < len(outer.Content); i += 2 {
		if name := outer.Content[i].Value; name != "profiles" && node.Get(root, name) == nil {
			root.Content = append(root.Content, outer.Content[i], outer.Content[i+1])
		}
	}
}

// CheckNames reports unknown predicates and priorities.
func CheckNames(doc *schema.Document) schema.Problems {
	p := newReader(schema.NewReport(doc, false))
	p.readPredicates(node.Get(doc.Root, "predicates"))
	p.readPriorities(node.Get(doc.Root, "priorities"))
	return p.Problems
}

// readPredicates reads the filters.
func (p *reader) readPredicates(given *yaml.Node) {
	for _, known := range predicates() {
		if known.always || known.byDefault && node.IsNull(given) {
			p.filter(known.plugins, nil)
		}
	}
	for _, e := range node.Items(given) {
		name, argument := node.Text(e, "name"), node.Get(e, "argument")
		i := slices.IndexFunc(predicates(), func(known predicate) bool { return known.name == name })
		affinity, presence := node.Get(argument, "serviceAffinity"), node.Get(argument, "labelsPresence")
		switch {
		case i >= 0:
			p.ignoredArgument(e)
			p.filter(predicates()[i].plugins, e)
		case affinity != nil:
			p.label(schema.ServiceAffinity, "affinityLabels", node.Get(affinity, "labels"))
			p.filter([]string{schema.ServiceAffinity}, e)
		case presence != nil:
			field := "absentLabels"
			if node.IsTrue(presence, "presence") {
				field = "presentLabels"
			}
			p.label(schema.NodeLabel, field, node.Get(presence, "labels"))
			p.filter([]string{schema.NodeLabel}, e)
		default:
			var names []string
			for _, known := range predicates() {
				names = append(names, known.name)
			}
			p.unknown(e, "predicate", name, names)
		}
	}
}

// readPriorities reads the scoring plugins and their weights. If two priorities name one plugin,
// the last one applies, except for pod spreading.
func (p *reader) readPriorities(given *yaml.Node) {
	byName := map[string]activePlugin{}
	for _, known := range priorities() {
		if node.IsNull(given) && known.weight > 0 {
			byName[known.name] = activePlugin{known.plugin, known.weight, nil}
		}
	}
	for _, e := range node.Items(given) {
		name, weight := node.Text(e, "name"), node.Number(e, "weight")
		if name == equalPriority {
			p.Note(e, "%s left out: it gives all nodes the same score", name)
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
		byName[name] = activePlugin{priorities()[i].plugin, weight, e}
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

// customPriority reads a priority that is defined by its argument.
func (p *reader) customPriority(e *yaml.Node, name string, weight int) {
	argument := node.Get(e, "argument")
	spread, label, ratio := node.Get(argument, "serviceAntiAffinity"), node.Get(argument,
		"labelPreference"), node.Get(argument, "requestedToCapacityRatioArguments")
	switch {
	case spread != nil:
		p.weighted(schema.ServiceAffinity, "antiAffinityLabelsPreference", node.Get(spread, "label"), weight, e)
	case label != nil:
		field := "absentLabelsPreference"
		if node.IsTrue(label, "presence") {
			field = "presentLabelsPreference"
		}
		p.weighted(schema.NodeLabel, field, node.Get(label, "label"), weight, e)
	case ratio != nil && p.ratio != nil:
		p.Refuse(e, "remove one of them", "only one priority with requestedToCapacityRatioArguments is allowed")
	case ratio != nil:
		p.ratio = ratio
		p.scores = append(p.scores, activePlugin{schema.CapacityRatio, weight, e})
	default:
		var names []string
		for _, known := range priorities() {
			names = append(names, known.name)
		}
		p.unknown(e, "priority", name, names)
	}
}

// weighted adds a label that a plugin scores. All labels have the same weight, the weight of their
// priority.
func (p *reader) weighted(plugin, field string, label *yaml.Node, weight int, e *yaml.Node) {
	p.label(plugin, field, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{label}})
	i := slices.IndexFunc(p.scores, func(w activePlugin) bool { return w.plugin == plugin })
	if i < 0 {
		p.scores = append(p.scores, activePlugin{plugin, weight, e})
		return
	}
	if first := node.Number(p.scores[i].source, "weight"); first != weight {
		p.Refuse(e, "give them the same weight", "weight %d differs from %d, the weight of the first priority of its kind",
			weight, first)
	}
	p.scores[i].weight += weight
}

func (p *reader) unknown(e *yaml.Node, what, name string, names []string) {
	try := "remove it, or set its argument"
	if meant := schema.Nearest(name, names); meant != "" {
		try = "did you mean " + meant + "?"
	}
	p.Refuse(node.Get(e, "name"), try, "unknown %s %q without an argument", what, name)
}

func (p *reader) ignoredArgument(e *yaml.Node) {
	if key, argument := node.Lookup(e, "argument"); !node.IsNull(argument) {
		p.Note(key, "the argument of %s left out: built-in names ignore it", node.Text(e, "name"))
	}
}

func (p *reader) filter(plugins []string, source *yaml.Node) {
	for _, name := range plugins {
		i := slices.IndexFunc(p.filters, func(w activePlugin) bool { return w.plugin == name })
		if i < 0 {
			p.filters = append(p.filters, activePlugin{plugin: name, source: source})
		} else if p.filters[i].source == nil {
			p.filters[i].source = source
		}
	}
}

func (p *reader) label(plugin, field string, labels *yaml.Node) {
	if p.labels[plugin] == nil {
		p.labels[plugin] = map[string][]string{}
	}
	for _, l := range node.Items(labels) {
		p.labels[plugin][field] = append(p.labels[plugin][field], node.Text(l))
	}
}

// legacyExtenders renames the fields of extenders to their names in a configuration.
func (p *reader) legacyExtenders(extenders *yaml.Node) {
	for _, e := range node.Items(extenders) {
		if key, _ := node.Lookup(e, "enableHttps"); key != nil {
			key.Value = "enableHTTPS"
		}
		if key, value := node.Lookup(e, "httpTimeout"); !node.IsNull(value) {
			nanoseconds, _ := strconv.ParseInt(value.Value, 10, 64)
			node.Put(e, "httpTimeout", node.String(time.Duration(nanoseconds).String()))
			p.Note(key, "httpTimeout %s becomes %s: a Policy has nanoseconds", value.Value, time.Duration(nanoseconds))
		}
	}
}
