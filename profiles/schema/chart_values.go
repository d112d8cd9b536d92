package schema

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// isChartValues reports whether a mapping has the values of scheduler-plugins' Helm chart
// (manifests/install/charts/as-a-second-scheduler/values.yaml): a list of plugins by name.
func isChartValues(n *yaml.Node) bool {
	return node.Get(n, "kind") == nil && node.IsMapping(n, "scheduler") && len(node.Items(n, "plugins", "enabled")) > 0
}

// chartConfiguration returns the configuration that the chart makes of its values
// (templates/configmap.yaml). Unlike in the chart, a value that is left out has no default.
func chartConfiguration(values *yaml.Node) found {
	var notes []Note
	note := func(at *yaml.Node, message string) {
		notes = append(notes, Note{Line: at.Line, Column: at.Column, Message: message})
	}
	note(values, "read from the values of a Helm chart")
	profile := node.Mapping()
	if name := node.Get(values, "scheduler", "name"); name != nil {
		node.Put(profile, "schedulerName", name)
	}
	points := node.Mapping()
	for _, list := range []string{"enabled", "disabled"} {
		var entries []*yaml.Node
		for _, name := range node.Items(values, "plugins", list) {
			entry := node.Mapping("name", name)
			entry.Line, entry.Column = name.Line, name.Column
			entries = append(entries, entry)
		}
		if entries != nil {
			node.Put(points, list, node.Sequence(entries))
		}
	}
	node.Put(profile, "plugins", node.Mapping("multiPoint", points))
	if config := node.Get(values, "pluginConfig"); len(node.Items(config)) > 0 {
		node.Put(profile, "pluginConfig", config)
	}
	root := node.Mapping("apiVersion", node.String(ConfigGroup+"/v1"), "kind", node.String(ConfigKind))
	if elect := node.Get(values, "scheduler", "leaderElect"); elect != nil {
		node.Put(root, "leaderElection", node.Mapping("leaderElect", elect))
	}
	node.Put(root, "profiles", node.Sequence([]*yaml.Node{profile}))
	root.Line, root.Column = values.Line, values.Column
	if controller := node.Get(values, "controller"); controller != nil {
		note(controller, "the controller of scheduler-plugins is not deployed by pmk-sched; keep the chart's, or install it "+
			"from its manifests")
	}
	return found{root: root, notes: notes}
}
