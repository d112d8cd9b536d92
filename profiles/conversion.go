package profiles

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// convertOptions say for which release a document is converted.
type convertOptions struct {
	release versions.Release
	rules   versions.Rules
	// to is the config API to write.
	to api
	// plugins names the plugins that are compiled in beside the in-tree ones, points
	// has the extension points of those of them that are known.
	plugins []string
	points  map[string][]string
	// deploy says that the document is deployed: its addresses are set, and it names
	// no plugin that is not compiled in. Else it stays the user's own, and nothing of a
	// deployment is forced on it.
	deploy bool
	// insecurePort is the port of the plain HTTP listener of a deployment; 0 is
	// DefaultInsecurePort.
	insecurePort int
}

// Ports are the ports that a configuration speaks of.
type Ports struct {
	// Insecure is the loopback port that the rendered configuration makes the
	// scheduler listen on with plain HTTP: 1.20–1.22 only, else 0.
	Insecure int `json:"insecure,omitempty"`
	// Source is the port that the source gave for health and metrics, else 0.
	// From 1.23 on nothing listens there.
	Source int `json:"source,omitempty"`
}

// DefaultInsecurePort is the loopback port of the plain HTTP listener of
// 1.20–1.22 where the caller names none. 10251 is the default scheduler's, 10252
// was the controller manager's.
const DefaultInsecurePort = 10261

// convertResult is what a release needs beside the document.
type convertResult struct {
	// args are flags for what the document cannot say any more.
	args  []string
	ports Ports
}

// conversion converts one document from the config API that it was written in to
// the one that a release reads.
type conversion struct {
	*report
	convertOptions
	convertResult
	doc   *document
	from  api
	minor int
}

// runConversion converts a document in place. Each step leaves a document that the
// following ones understand; none looks at what a later one writes.
func runConversion(doc *document, r *report, o convertOptions) convertResult {
	minor := o.release.Minor
	o.to = o.to.of(minor)
	c := &conversion{report: r, convertOptions: o, doc: doc, minor: minor, from: doc.api}
	if c.from.minor == 0 {
		c.from = doc.api.of(doc.api.sourceMinor(minor))
	}
	c.document()
	if c.deploy {
		c.addresses()
	} else {
		c.ownAddresses()
	}
	for _, p := range doc.profiles() {
		c.profile(p)
	}
	c.fit(doc.root, configuration(), "")
	if !c.deploy {
		c.ownElection()
		c.tidy()
	}
	return c.convertResult
}

// sourceMinor returns the minor whose defaults a document of the config API
// means: the target's where it reads the API too, else the one nearest to it.
func (a api) sourceMinor(target int) int {
	first, last := a.readers()
	return min(max(target, first), last)
}

// profile carries one profile. The order matters: names are settled before
// weights, weights before what v1beta1 wants disabled first.
func (c *conversion) profile(p *yaml.Node) {
	plugins := child(p, "plugins")
	c.dropIgnored(plugins)
	c.preEnqueue(plugins)
	c.disableLater(plugins)
	c.expandMultiPoint(plugins)
	c.scoring(p, plugins)
	c.nodeLabels(p, plugins)
	off := disabledNames(plugins, "score")
	c.replaceNames(p, plugins)
	c.keepDefaultWeights(plugins)
	c.lostDefaults(off)
	c.keepOutAvoidPods(plugins)
	c.fitPoints(plugins)
	c.fitEntries(plugins)
	c.checkNames(p, plugins)
	c.disableFirst(plugins)
	c.disableOverridden(plugins)
	c.spreadDefaulting(p)
	c.pluginArgs(p)
	for _, point := range points() {
		if set := get(plugins, point.name); isMapping(set) {
			prune(set, "enabled")
			prune(set, "disabled")
		}
		prune(plugins, point.name)
	}
	prune(p, "plugins")
	prune(p, "pluginConfig")
}

// document writes the target's apiVersion.
func (c *conversion) document() {
	_, version := lookup(c.doc.root, "apiVersion")
	if c.from.name == c.to.name {
		return
	}
	if !c.doc.policy {
		c.note(version, "config API %s becomes %s: %s reads %s", c.from.name, c.to.name, c.release, c.accepted())
	}
	version.Value = c.to.version()
}

// accepted names the config APIs that the release reads.
func (c *conversion) accepted() string {
	return strings.Join(shortNames(c.rules.Accepted), " and ")
}

// fit takes out of a mapping, and of those below it, what the target does not
// have, where nothing is lost by it. The fields that rules speak of are gone by
// then.
func (c *conversion) fit(n *yaml.Node, o object, where string) {
	for _, f := range o.fields {
		key, value := lookup(n, f.name)
		if key == nil {
			continue
		}
		if !f.in(c.to) {
			c.unfit(n, key, f, where)
			continue
		}
		if f.object == nil {
			continue
		}
		below := []*yaml.Node{value}
		if f.kind == kindObjects {
			below = items(value)
		}
		for _, b := range below {
			c.fit(b, f.object(), join(where, f.name))
		}
	}
}

func (c *conversion) unfit(n, key *yaml.Node, f field, where string) {
	name := join(where, f.name)
	_, value := lookup(n, f.name)
	switch {
	case isNull(value):
		remove(n, f.name)
	case f.lost != "":
		remove(n, f.name)
		c.note(key, "%s left out: %s does not have it; %s", name, c.release, f.lost)
	case f.hoisted && len(c.doc.profiles()) == 1:
		remove(n, f.name)
		put(c.doc.root, f.name, value)
		c.note(key, "%s moved to the top of the document: %s has it there only", f.name, c.release)
	default:
		remove(n, f.name)
		c.loss(key, "leave it out", "%s does not have %s in %s", c.release, name, c.to.name)
	}
}
