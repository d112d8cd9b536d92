package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// exists reports whether the release can enable a plugin in the target config API.
func (c *conversion) exists(name string) bool {
	if slices.Contains(c.Plugins, name) {
		return true
	}
	return slices.Contains(c.Rules.Plugins, name) && !slices.Contains(c.Rules.RejectedPlugins[c.To.GroupVersion()], name)
}

// checkNames rejects names that would stop the scheduler, and unknown names that it would silently
// ignore.
func (c *profileConversion) checkNames() {
	c.dropForeign()
	for _, set := range schema.PluginSets(c.sets) {
		seen := map[string]bool{}
		for _, e := range node.Items(set.Node, "enabled") {
			name := node.Text(e, "name")
			if c.checkName(node.Get(e, "name"), name, false); seen[name] {
				c.Refuse(e, "remove one of them", "plugin %s is enabled twice under %s", name, set.Point)
			}
			seen[name] = true
		}
		for _, e := range node.Items(set.Node, "disabled") {
			if name := node.Text(e, "name"); name != schema.AllPlugins {
				c.checkName(node.Get(e, "name"), name, true)
			}
		}
	}
	seen := map[string]bool{}
	for _, e := range node.Items(c.profile, "pluginConfig") {
		name := node.Text(e, "name")
		if c.checkName(node.Get(e, "name"), name, true); seen[name] {
			c.Refuse(e, "remove one of them", "pluginConfig has two entries for %s", name)
		}
		seen[name] = true
	}
}

// dropNameless removes elements without a name from disabled and pluginConfig. The scheduler
// ignores them, and the document has a warning about each.
func (c *profileConversion) dropNameless() {
	named := func(e *yaml.Node) bool { return node.Text(e, "name") != "" }
	for _, set := range schema.PluginSets(c.sets) {
		node.Filter(node.Get(set.Node, "disabled"), named)
	}
	node.Filter(node.Get(c.profile, "pluginConfig"), named)
}

// dropForeign removes enabled plugins of other releases, if losses are allowed.
func (c *profileConversion) dropForeign() {
	for _, set := range schema.PluginSets(c.sets) {
		for _, e := range slices.Clone(node.Items(set.Node, "enabled")) {
			if name := node.Text(e, "name"); c.Lossy && !c.exists(name) && versions.EverInTree(name) {
				schema.DropEntry(c.sets, set.Point, "enabled", e)
				c.Loss(e, "", "plugin %s does not exist in %s", name, c.Release)
			}
		}
	}
}

// checkName rejects a name that the release lacks. If idle, the name enables nothing, so a plugin
// of another release is harmless.
func (c *conversion) checkName(n *yaml.Node, name string, idle bool) {
	available := slices.Concat(c.Rules.Plugins, c.Plugins)
	switch {
	case c.exists(name):
		return
	case idle && versions.EverInTree(name):
		c.Note(n, "%s does not exist in %s; the line has no effect", name, c.Release)
		return
	case !c.Deploy && !versions.EverInTree(name) && schema.Nearest(name, available) == "":
		c.Note(n, "%s is not an in-tree plugin; compile it into %s", name, c.Release)
		return
	}
	try := "plugins of " + c.Release.String() + ": " + strings.Join(available, ", ") + "; compile others in with --with"
	if advice := schema.Successor(name); advice != "" {
		try = advice
	} else if meant := schema.Nearest(name, available); meant != "" {
		try = "did you mean " + meant + "? Plugins that are not in-tree are compiled in with --with"
	}
	c.Refuse(n, try, "plugin %q does not exist in %s", name, c.Release)
}
