package profiles

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dropIgnored takes out the plugin sets that the source's config API accepts and
// then ignores: written anywhere else they would begin to count.
func (c *conversion) dropIgnored(plugins *yaml.Node) {
	for _, point := range c.from.ignored {
		key, set := remove(plugins, point)
		if isMapping(set) && len(set.Content) > 0 {
			c.note(key, "%s left out: in %s it is accepted and ignored, so it never was in effect; write the file in v1 to have it count", point, c.from.name)
		}
	}
}

// expandMultiPoint writes multiPoint out for each extension point, where the
// target does not know it.
func (c *conversion) expandMultiPoint(plugins *yaml.Node) {
	if c.to.multiPoint {
		return
	}
	key, multi := remove(plugins, multiPoint)
	enabled, off := items(get(multi, "enabled")), items(get(multi, "disabled"))
	if len(enabled)+len(off) == 0 {
		return
	}
	c.note(key, "multiPoint written out for each extension point: %s does not have it", c.to.name)
	c.gatesStay(enabled, off)
	for _, e := range enabled {
		c.checkExpandable(e)
	}
	for _, e := range off {
		if name := text(get(e, "name")); name != everyPlugin {
			c.checkName(get(e, "name"), name, true)
		}
	}
	for _, point := range pointNames() {
		if !c.readsPoint(point) || disabled(plugins, point, everyPlugin) {
			continue
		}
		c.spreadDisabled(plugins, point, enabled, off)
		c.spreadEnabled(plugins, point, enabled, off)
	}
}

// checkExpandable refuses a plugin under multiPoint that would be lost: one that
// the release does not have, or whose extension points are not known here.
func (c *conversion) checkExpandable(e *yaml.Node) {
	name := text(get(e, "name"))
	known, ok := c.pluginNamed(name)
	switch reaches := slices.ContainsFunc(known.points, c.readsPoint); {
	case ok && c.exists(name) && reaches, name == schedulingGates && c.exists(name):
		return
	case everInTree(name) && !c.exists(name) && !c.lossy:
		c.checkName(get(e, "name"), name, false)
		return
	case everInTree(name) && !c.exists(name):
		c.loss(e, "", "plugin %s does not exist in %s", name, c.release)
		return
	case !c.exists(name) && c.deploy:
		c.checkName(get(e, "name"), name, false)
		return
	}
	c.loss(e, "enable it under each extension point that it implements, such as filter or score",
		"%s has no multiPoint, and which extension points plugin %s implements is not known here", c.to.name, name)
}

// pluginNamed returns what is known of a plugin: an in-tree one, or one that was
// compiled in.
func (c *conversion) pluginNamed(name string) (inTree, bool) {
	if points, ok := c.points[name]; ok {
		return inTree{name: name, points: points}, true
	}
	return inTreeNamed(name)
}

// readsPoint says whether the target has an extension point and heeds it.
func (c *conversion) readsPoint(name string) bool {
	return !slices.Contains(c.to.ignored, name) && slices.ContainsFunc(points(), func(p point) bool {
		return p.name == name && field{apis: p.apis, since: p.since}.in(c.to)
	})
}

// spreadDisabled disables at one extension point what multiPoint disables.
func (c *conversion) spreadDisabled(plugins *yaml.Node, point string, enabled, off []*yaml.Node) {
	again := func(name string) bool {
		return slices.ContainsFunc(enabled, func(e *yaml.Node) bool { return text(get(e, "name")) == name })
	}
	for _, e := range off {
		name := text(get(e, "name"))
		hit := c.defaultOf22(point, name) && !again(name)
		if name == everyPlugin {
			hit = slices.ContainsFunc(inTreePlugins(), func(p inTree) bool { return c.defaultOf22(point, p.name) })
		}
		if hit && entry(plugins, point, "disabled", name) == nil {
			disable(plugins, point, name)
		}
	}
}

// spreadEnabled enables at one extension point what multiPoint enables and the
// point does not have yet, or has with another weight.
func (c *conversion) spreadEnabled(plugins *yaml.Node, point string, enabled, off []*yaml.Node) {
	all := slices.ContainsFunc(off, func(e *yaml.Node) bool { return text(get(e, "name")) == everyPlugin })
	for _, e := range enabled {
		name, weight := text(get(e, "name")), 0
		p, known := c.pluginNamed(name)
		spreads := known && p.takesPart(point, c.minor) && (name != volumeBinding || c.defaultOf22(point, name))
		if !spreads || entry(plugins, point, "enabled", name) != nil ||
			entry(plugins, point, "disabled", name) != nil {
			continue
		}
		if point == "score" {
			weight = max(1, number(get(e, "weight")))
		}
		if all || !c.defaultOf22(point, name) || weight > 0 {
			enable(plugins, point, name, weight)
		}
	}
}

// defaultOf22 says whether a plugin is a default of an extension point in the
// names of v1beta2, which are those of the source here.
func (c *conversion) defaultOf22(point, name string) bool {
	a, _ := apiNamed("v1beta2")
	return isDefault(a.of(c.minor), point, name)
}

// keepDefaultWeights writes out the weights of default plugins where the target
// has others, so that the scores keep their proportions.
func (c *conversion) keepDefaultWeights(plugins *yaml.Node) {
	if c.doc.preset {
		return
	}
	var kept []string
	for _, p := range inTreePlugins() {
		was, is := p.weight(c.from), p.weight(c.to)
		if was == is || !p.defaults.has(c.from.set) || !p.defaults.has(c.to.set) ||
			entry(plugins, "score", "enabled", p.name) != nil || disabled(plugins, "score", p.name) {
			continue
		}
		enable(plugins, "score", p.name, was)
		kept = append(kept, fmt.Sprintf("%s %d (not %d)", p.name, was, is))
	}
	if len(kept) > 0 {
		c.note(get(c.doc.root, "apiVersion"), "default weights of %s written out under score, since %s has others: %s", c.from.name, c.to.name, strings.Join(kept, ", "))
	}
}

// lostDefaults tells which default plugins of the source's config API are gone
// without a successor, where the source did not disable them itself: off are
// those that it did.
func (c *conversion) lostDefaults(off []string) {
	for _, f := range fates() {
		p, _ := inTreeNamed(f.name)
		if c.doc.preset || f.successor != "" || c.exists(f.name) || !p.defaults.has(c.from.set) ||
			slices.Contains(off, f.name) || slices.Contains(off, everyPlugin) {
			continue
		}
		c.note(get(c.doc.root, "apiVersion"), "%s, a default of %s, is not there in %s: %s", f.name, c.from.name, c.release, f.why)
	}
}

// fitPoints takes out the plugin sets of extension points that the target does
// not have; one that enables something cannot be left out.
func (c *conversion) fitPoints(plugins *yaml.Node) {
	for _, p := range points() {
		key, set := lookup(plugins, p.name)
		if key == nil || (field{apis: p.apis, since: p.since}).in(c.to) {
			continue
		}
		if enabled := items(get(set, "enabled")); len(enabled) > 0 {
			c.loss(key, "leave it out, or enable the plugin at another extension point",
				"%s has no extension point %s, where %s is enabled", c.release, p.name, text(get(enabled[0], "name")))
		} else {
			c.note(key, "%s left out: %s does not have that extension point, so there is nothing to disable", p.name, c.release)
		}
		remove(plugins, p.name)
	}
}

// fitEntries takes out plugins that do not take part in the extension point yet,
// which stops the scheduler. Before preFilter and preScore they did the same work
// later; scoring is lost.
func (c *conversion) fitEntries(plugins *yaml.Node) {
	for _, set := range pluginSets(plugins) {
		for _, e := range slices.Clone(items(get(set.node, "enabled"))) {
			name := text(get(e, "name"))
			p, _ := inTreeNamed(name)
			switch {
			case slices.Contains(c.plugins, name) || extends(name, set.point, c.minor):
			case !slices.Contains(p.points, set.point):
				c.refuse(e, "leave the line out", "plugin %s takes no part in %s", name, set.point)
			case set.point == "score":
				drop(plugins, set.point, "enabled", e)
				c.loss(e, "leave the line out", "plugin %s does not score in %s", name, c.release)
			default:
				drop(plugins, set.point, "enabled", e)
				c.note(e, "%s left out of %s: in %s it takes no part there, and does its work at the others", name, set.point, c.release)
			}
		}
	}
}

// defaultsFirst keeps the order where it counts: a default that is enabled again
// stands before the others in the source's config API, wherever it is named.
func (c *conversion) defaultsFirst(plugins *yaml.Node, set namedSet) {
	slices.SortStableFunc(items(get(set.node, "enabled")), func(a, b *yaml.Node) int {
		first := func(e *yaml.Node) int {
			if name := text(get(e, "name")); isDefault(c.to, set.point, name) && !disabled(plugins, set.point, name) {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
}

// disableFirst disables each default plugin that is enabled by name, where the
// target would run it twice otherwise and refuse to start.
func (c *conversion) disableFirst(plugins *yaml.Node) {
	if !c.to.duplicates {
		return
	}
	for _, set := range pluginSets(plugins) {
		if !c.from.duplicates && (set.point == pointBind || set.point == "postFilter") {
			c.defaultsFirst(plugins, set)
		}
		for _, e := range items(get(set.node, "enabled")) {
			name := text(get(e, "name"))
			if !isDefault(c.to, set.point, name) || disabled(plugins, set.point, name) {
				continue
			}
			disable(plugins, set.point, name)
			if c.from.duplicates && !c.doc.policy {
				c.note(e, "%s is a default of %s; disabled first, since enabling it again would run it twice and stop the scheduler", name, c.to.name)
			}
		}
	}
}
