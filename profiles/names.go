package profiles

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// exists says whether the release can enable a plugin in the config API that is
// rendered.
func (c *conversion) exists(name string) bool {
	if slices.Contains(c.plugins, name) {
		return true
	}
	return slices.Contains(c.rules.Plugins, name) && !slices.Contains(c.rules.RejectedPlugins[c.to.version()], name)
}

// replaceNames puts the successor in the place of each plugin that the release
// no longer has, and leaves out what only disabled one.
func (c *conversion) replaceNames(p, plugins *yaml.Node) {
	for _, set := range pluginSets(plugins) {
		for _, e := range slices.Clone(items(get(set.node, "enabled"))) {
			name := text(get(e, "name"))
			if f, gone := fateOf(name); gone && !c.exists(name) {
				c.replaceName(plugins, set.point, e, f)
			}
		}
		for _, e := range slices.Clone(items(get(set.node, "disabled"))) {
			name := text(get(e, "name"))
			if f, gone := fateOf(name); gone && !c.exists(name) {
				drop(plugins, set.point, "disabled", e)
				c.note(e, "%s is no longer disabled: %s does not have it; %s", name, c.release, f.why)
			}
		}
	}
	for _, e := range slices.Clone(items(get(p, "pluginConfig"))) {
		name := text(get(e, "name"))
		if f, gone := fateOf(name); gone && !c.exists(name) {
			dropConfig(p, e)
			c.note(e, "the arguments of %s left out: %s does not have it; %s", name, c.release, f.why)
		}
	}
}

func (c *conversion) replaceName(plugins *yaml.Node, point string, e *yaml.Node, f fate) {
	if f.successor == "" {
		drop(plugins, point, "enabled", e)
		c.loss(e, f.try, "plugin %s does not exist in %s: %s", f.name, c.release, f.why)
		return
	}
	there := entry(plugins, point, "enabled", f.successor) != nil ||
		isDefault(c.to, point, f.successor) && !disabled(plugins, point, f.successor) ||
		c.spreads(plugins, point, f.successor)
	if there {
		drop(plugins, point, "enabled", e)
		c.note(e, "%s left out: %s does not have it; %s, and that is enabled already", f.name, c.release, f.why)
		return
	}
	rename(e, f.successor)
	c.note(e, "%s becomes %s: %s does not have it; %s", f.name, f.successor, c.release, f.why)
}

// spreads says whether a plugin reaches an extension point by way of multiPoint.
func (c *conversion) spreads(plugins *yaml.Node, point, name string) bool {
	if !c.to.multiPoint || point == multiPoint || disabled(plugins, point, name) {
		return false
	}
	return entry(plugins, multiPoint, "enabled", name) != nil ||
		isDefault(c.to, multiPoint, name) && !disabled(plugins, multiPoint, name)
}

// checkNames refuses every name that the release's scheduler would stop at, and
// those that it would pass over without a word because nothing is called so.
func (c *conversion) checkNames(p, plugins *yaml.Node) {
	c.dropForeign(plugins)
	for _, set := range pluginSets(plugins) {
		seen := map[string]bool{}
		for _, e := range items(get(set.node, "enabled")) {
			name := text(get(e, "name"))
			if c.checkName(get(e, "name"), name, false); seen[name] {
				c.refuse(e, "keep one of the two", "plugin %s is enabled twice under %s", name, set.point)
			}
			seen[name] = true
		}
		for _, e := range items(get(set.node, "disabled")) {
			if name := text(get(e, "name")); name != everyPlugin {
				c.checkName(get(e, "name"), name, true)
			}
		}
	}
	seen := map[string]bool{}
	for _, e := range items(get(p, "pluginConfig")) {
		name := text(get(e, "name"))
		if c.checkName(get(e, "name"), name, true); seen[name] {
			c.refuse(e, "keep one of the two", "pluginConfig has two entries for %s", name)
		}
		seen[name] = true
	}
}

// dropForeign takes out, as losses, plugins of other releases that are enabled.
func (c *conversion) dropForeign(plugins *yaml.Node) {
	for _, set := range pluginSets(plugins) {
		for _, e := range slices.Clone(items(get(set.node, "enabled"))) {
			if name := text(get(e, "name")); c.lossy && !c.exists(name) && everInTree(name) {
				drop(plugins, set.point, "enabled", e)
				c.loss(e, "", "plugin %s does not exist in %s", name, c.release)
			}
		}
	}
}

// checkName refuses a name that the release does not have. Where nothing is
// enabled by it (idle), a plugin of some other release is harmless.
func (c *conversion) checkName(n *yaml.Node, name string, idle bool) {
	available := slices.Concat(c.rules.Plugins, c.plugins)
	switch {
	case c.exists(name):
		return
	case idle && everInTree(name):
		c.note(n, "%s does not exist in %s; the line has no effect", name, c.release)
		return
	case !c.deploy && !everInTree(name) && nearest(name, available) == "":
		c.note(n, "%s is no plugin of Kubernetes; %s needs it compiled in", name, c.release)
		return
	}
	try := "plugins of " + c.release.String() + ": " + strings.Join(available, ", ") + "; compile others in with --with"
	if meant := nearest(name, available); meant != "" {
		try = "did you mean " + meant + "? Plugins that are not in-tree are compiled in with --with"
	}
	c.refuse(n, try, "plugin %q does not exist in %s", name, c.release)
}

// everInTree says whether some supported release has a plugin of that name.
func everInTree(name string) bool {
	for _, release := range versions.Releases() {
		rules, _, err := versions.Select(release)
		if err == nil && slices.Contains(rules.Plugins, name) {
			return true
		}
	}
	return false
}
