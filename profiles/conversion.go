package profiles

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// conversion carries one document from the config API that it was written in to
// the one that a release reads.
type conversion struct {
	request  Request
	rules    versions.Rules
	doc      *document
	from, to api
	minor    int
	// own says that the document stays the user's: nothing of a deployment is
	// forced on it.
	own bool
	// made are nodes that stand for nothing in the source, which no note is about.
	made map[*yaml.Node]bool

	notes    []Note
	problems problems
	args     []string
	ports    Ports

	leaderElect bool
}

func newConversion(r Request, rules versions.Rules, to api, doc *document) *conversion {
	minor := r.Release.Minor
	c := &conversion{request: r, rules: rules, doc: doc, to: to.of(minor), minor: minor, made: map[*yaml.Node]bool{}}
	c.from = doc.api.of(doc.api.sourceMinor(minor))
	c.notes = append(c.notes, doc.notes...)
	return c
}

// sourceMinor returns the minor whose defaults a document of the config API
// means: the target's where it reads the API too, else the one nearest to it.
func (a api) sourceMinor(target int) int {
	first, last := a.readers()
	return min(max(target, first), last)
}

// run applies the rules in their order. Each step leaves a document that the
// following ones understand; none looks at what a later one writes.
func (c *conversion) run() {
	c.policy()
	c.document()
	if c.own {
		c.ownAddresses()
	} else {
		c.addresses()
	}
	for _, p := range c.profiles() {
		c.profile(p)
	}
	c.fit(c.doc.root, configuration(), "")
	c.extenders()
	if c.own {
		c.ownElection()
		c.tidy()
		return
	}
	c.identity()
	c.connection()
	c.election()
	if c.doc.preset { // nobody wrote it; the extenders somebody did
		c.notes = slices.DeleteFunc(c.notes, func(n Note) bool { return !n.Warning })
	}
	c.enablePlugins()
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

// profiles returns the profiles of the document, and makes the one that a
// configuration without any stands for.
func (c *conversion) profiles() []*yaml.Node {
	all := list(c.doc.root, "profiles")
	if len(all.Content) == 0 {
		all.Content = append(all.Content, mapping())
	}
	return all.Content
}

// document writes the target's apiVersion.
func (c *conversion) document() {
	_, version := lookup(c.doc.root, "apiVersion")
	if c.from.name == c.to.name {
		return
	}
	if !c.doc.policy {
		c.note(version, "config API %s becomes %s: %s reads %s", c.from.name, c.to.name, c.request.Release, c.accepted())
	}
	version.Value = c.to.version()
}

// accepted names the config APIs that the release reads.
func (c *conversion) accepted() string {
	return strings.Join(shortNames(c.rules.Accepted), " and ")
}

// note tells what changed at a node of the source; nil is the whole document.
func (c *conversion) note(n *yaml.Node, format string, args ...any) {
	if c.made[n] {
		return
	}
	c.tell(n, false, fmt.Sprintf(format, args...))
}

func (c *conversion) tell(n *yaml.Node, loss bool, message string) {
	place := at(n)
	added := Note{Line: place.line, Column: place.column, Message: message, Loss: loss}
	if !slices.Contains(c.notes, added) {
		c.notes = append(c.notes, added)
	}
}

// lose tells of something that cannot be carried: a problem, unless losses are
// allowed. The caller leaves it out then, which it may do in both cases.
func (c *conversion) lose(n *yaml.Node, try, format string, args ...any) {
	if c.request.Lossy {
		c.tell(n, true, fmt.Sprintf(format, args...))
		return
	}
	c.refuse(n, try, format, args...)
}

func (c *conversion) refuse(n *yaml.Node, try, format string, args ...any) {
	c.problems.add(at(n), try, format, args...)
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
		c.note(key, "%s left out: %s does not have it; %s", name, c.request.Release, f.lost)
	case f.hoisted && len(c.profiles()) == 1:
		remove(n, f.name)
		put(c.doc.root, f.name, value)
		c.note(key, "%s moved to the top of the document: %s has it there only", f.name, c.request.Release)
	default:
		remove(n, f.name)
		c.lose(key, "leave it out", "%s does not have %s in %s", c.request.Release, name, c.to.name)
	}
}

// namedPlugins returns the plugins that the rendered document enables or
// configures by name, sorted.
func (c *conversion) namedPlugins() []string {
	var names []string
	for _, p := range c.profiles() {
		for _, set := range pluginSets(get(p, "plugins")) {
			for _, plugin := range items(get(set.node, "enabled")) {
				names = append(names, text(get(plugin, "name")))
			}
		}
		for _, config := range items(get(p, "pluginConfig")) {
			names = append(names, text(get(config, "name")))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
