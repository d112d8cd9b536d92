package profiles

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// Plugin is a compiled-in plugin, and how to enable it unless the configuration does.
type Plugin struct {
	// Name is its name in a configuration, Points are the extension points that it implements, as
	// named in a configuration: filter, preScore.
	Name   string
	Points []string
	// Signs reports whether the plugin declares the part of a pod that its results depend on: see
	// [FindUnbatched].
	Signs bool
	// Enable are the elements in Points at which the plugin is enabled. Nil means all of them, an
	// empty list none.
	Enable []string
	// Weight multiplies its scores. If it is 0, the scheduler's default is used, 1.
	Weight int
	// Args are its arguments, a YAML or JSON mapping. The configuration's own pluginConfig takes
	// precedence.
	Args []byte
}

// check rejects settings that do not fit the plugin.
func (p Plugin) check() error {
	refuse := func(try, format string, args ...any) error {
		return schema.NewError(try, "enable plugin %s: %s", p.Name, fmt.Sprintf(format, args...))
	}
	for _, point := range p.Enable {
		if !slices.Contains(p.Points, point) {
			return refuse("it implements "+strings.Join(p.Points, ", "), "it does not implement the extension point %q", point)
		}
	}
	if p.Weight < 0 || p.Weight > 0 && !slices.Contains(p.Points, "score") {
		return refuse("remove the weight", "invalid weight %d: must be above 0, and only for plugins that score", p.Weight)
	}
	if _, err := p.args(); err != nil {
		return refuse("write args as a mapping, see the documentation of the plugin", "%s", err)
	}
	return nil
}

// args returns the arguments as a mapping, or nil if there are none.
func (p Plugin) args() (*yaml.Node, error) {
	if len(bytes.TrimSpace(p.Args)) == 0 {
		return nil, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(p.Args, &doc); err != nil {
		return nil, fmt.Errorf("parse args: %w", err)
	}
	if len(doc.Content) == 0 || node.IsNull(doc.Content[0]) {
		return nil, nil
	}
	if !node.IsMapping(doc.Content[0]) {
		return nil, fmt.Errorf("args: expected a mapping, got %s", node.Describe(doc.Content[0]))
	}
	node.BlockStyle(doc.Content[0])
	return doc.Content[0], nil
}

// NamedPlugins returns the sorted names of the plugins that a configuration enables or configures,
// in-tree ones too.
func NamedPlugins(source []byte) ([]string, error) {
	doc, err := schema.Read("configuration", source, false)
	if err != nil {
		return nil, err
	}
	return namedPlugins(doc.Root), nil
}

// namedPlugins returns the sorted names of the plugins that a document enables or configures.
func namedPlugins(root *yaml.Node) []string {
	var names []string
	for _, p := range node.Items(root, "profiles") {
		for _, set := range schema.PluginSets(node.Get(p, "plugins")) {
			for _, plugin := range node.Items(set.Node, "enabled") {
				names = append(names, node.Text(plugin, "name"))
			}
		}
		for _, config := range node.Items(p, "pluginConfig") {
			names = append(names, node.Text(config, "name"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pluginPoints returns the extension points of plugins.
func pluginPoints(plugins []Plugin) map[string][]string {
	points := map[string][]string{}
	for _, p := range plugins {
		points[p.Name] = p.Points
	}
	return points
}

// enablePlugins enables the compiled-in plugins in every profile, unless the source enables or
// disables them.
func (d *deployment) enablePlugins() {
	for _, plugin := range d.request.Enable {
		if err := plugin.check(); err != nil {
			d.Problems = append(d.Problems, err.(*schema.Error).Problems...) //nolint:errorlint,forcetypeassert // check returns nothing else
			continue
		}
		named := slices.ContainsFunc(d.doc.Profiles(),
			func(p *yaml.Node) bool { return names(node.Get(p, "plugins"), plugin.Name) })
		for _, p := range d.doc.Profiles() {
			if !named {
				d.enablePlugin(p, plugin)
			}
			if names(node.Get(p, "plugins"), plugin.Name) {
				d.addArgs(p, plugin)
			}
		}
	}
}

// names reports whether a profile enables or disables a plugin by name.
func names(plugins *yaml.Node, name string) bool {
	return slices.ContainsFunc(schema.PluginSets(plugins), func(s schema.PluginSet) bool {
		return schema.Entry(plugins, s.Point, "enabled", name) != nil ||
			schema.Entry(plugins, s.Point, "disabled", name) != nil
	})
}

// enables reports whether a profile enables a plugin by name.
func enables(profile *yaml.Node, name string) bool {
	plugins := node.Get(profile, "plugins")
	return slices.ContainsFunc(schema.PluginSets(plugins), func(s schema.PluginSet) bool {
		return schema.Entry(plugins, s.Point, "enabled", name) != nil
	})
}

// enablePlugin enables a plugin in a profile: under multiPoint if the config API has it and all
// extension points are enabled, otherwise at each extension point.
func (d *deployment) enablePlugin(profile *yaml.Node, plugin Plugin) {
	wanted := plugin.Enable
	if wanted == nil {
		wanted = plugin.Points
	}
	if len(wanted) == 0 {
		return
	}
	plugins := node.Child(profile, "plugins")
	whole := plugin.Enable == nil && d.to.MultiPoint
	if whole {
		schema.Enable(plugins, schema.MultiPoint, plugin.Name, plugin.Weight)
	}
	for _, point := range wanted {
		switch {
		case point == schema.PointQueueSort:
			// Only one plugin sorts the queue.
			d.replaceDefaults(plugins, point, plugin.Name)
		case point == schema.PointBind:
			// The first plugin that does not skip a pod binds it, so the default comes last.
			d.replaceDefaults(plugins, point, plugin.Name, schema.DefaultBinder)
		case !whole && point == "score":
			schema.Enable(plugins, point, plugin.Name, plugin.Weight)
		case !whole:
			schema.Enable(plugins, point, plugin.Name, 0)
		}
	}
	d.Note(nil, "plugin %s enabled at %s", plugin.Name, strings.Join(wanted, ", "))
}

// replaceDefaults enables plugins at an extension point in that order, instead of the defaults.
func (d *deployment) replaceDefaults(plugins *yaml.Node, point string, order ...string) {
	if !schema.IsDisabled(plugins, point, schema.AllPlugins) {
		set := node.Child(plugins, point)
		node.Remove(set, "disabled")
		schema.Disable(plugins, point, schema.AllPlugins)
	}
	before := node.Items(plugins, point, "enabled")
	// Plugins that were enabled before stay before the default.
	at := slices.IndexFunc(before, func(e *yaml.Node) bool { return node.Text(e, "name") == schema.DefaultBinder })
	if at < 0 {
		at = len(before)
	}
	var added []*yaml.Node
	for _, name := range order {
		if schema.Entry(plugins, point, "enabled", name) == nil {
			added = append(added, node.Mapping("name", node.String(name)))
		}
	}
	node.List(node.Child(plugins, point), "enabled").Content = slices.Insert(slices.Clone(before), at, added...)
}

// addArgs adds the arguments that the profile's pluginConfig lacks.
func (d *deployment) addArgs(profile *yaml.Node, plugin Plugin) {
	given, err := plugin.args()
	if given == nil || err != nil {
		return
	}
	args := schema.ArgsOf(profile, plugin.Name)
	for i := 0; i+1 < len(given.Content); i += 2 {
		key, value := given.Content[i], given.Content[i+1]
		if old := node.Get(args, key.Value); old != nil {
			d.Note(old, "%s of plugin %s not changed: the configuration sets it", key.Value, plugin.Name)
			continue
		}
		node.Put(args, key.Value, value)
	}
}

// Arguments returns a plugin's arguments, as YAML, in each profile of the rendered configuration
// that enables it. An element is empty if the profile has none.
func (r *Rendered) Arguments(plugin string) ([][]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(r.YAML, &doc); err != nil || len(doc.Content) == 0 {
		return nil, fmt.Errorf("read the arguments of plugin %s: %w", plugin, err)
	}
	var all [][]byte
	for _, profile := range node.Items(doc.Content[0], "profiles") {
		if !enables(profile, plugin) {
			continue
		}
		args := node.Get(schema.ConfigOf(profile, plugin), "args")
		if args == nil || node.IsNull(args) {
			all = append(all, nil)
			continue
		}
		text, err := yaml.Marshal(args)
		if err != nil {
			return nil, fmt.Errorf("read the arguments of plugin %s: %w", plugin, err)
		}
		all = append(all, text)
	}
	return all, nil
}
