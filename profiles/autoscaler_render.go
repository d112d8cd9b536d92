package profiles

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ForAutoscaler returns the part of a configuration that an autoscaler reads, for pods with one
// profile, and notes on the rest: a KubeSchedulerConfiguration with in-tree plugins for
// [ClusterAutoscaler], the SCHEDULER_CONFIG value for [Karpenter]. If no profile has the name, the
// first one is used.
func ForAutoscaler(configuration []byte, a Autoscaler, name string) (text []byte, notes []string, err error) {
	doc, err := schema.Read("configuration", configuration, false)
	if err != nil {
		return nil, nil, fmt.Errorf("write a configuration for %s: %w", a, err)
	}
	if doc.Policy {
		return nil, nil, errors.New("a legacy Policy cannot be written for an autoscaler: use a KubeSchedulerConfiguration")
	}
	all := doc.Profiles()
	profile := all[max(slices.IndexFunc(all, func(p *yaml.Node) bool { return profileName(p) == name }), 0)]
	for _, other := range all {
		if other != profile {
			notes = append(notes, "profile "+profileName(other)+" is left out: "+string(a)+" reads one")
		}
	}
	root := forKarpenter(profile)
	if a == ClusterAutoscaler {
		var dropped []string
		root, dropped = forClusterAutoscaler(doc, profile)
		notes = append(notes, "for --scheduler-config-file of cluster-autoscaler 1.27 and later, of the minor release of the cluster")
		if len(dropped) > 0 {
			notes = append(notes, "left out, because cluster-autoscaler exits if it does not have a plugin: "+
				sortedNames(dropped))
		}
	} else {
		notes = append(notes, "for the variable SCHEDULER_CONFIG of Karpenter, which releases from August 2026 on read")
	}
	if text, err = schema.Encode(root); err != nil {
		return nil, nil, fmt.Errorf("write a configuration for %s: %w", a, err)
	}
	return text, notes, nil
}

// forKarpenter returns a profile's default constraints. Karpenter refuses fields that have no
// effect on default constraints.
func forKarpenter(profile *yaml.Node) *yaml.Node {
	list := node.Sequence(nil)
	for _, c := range defaultConstraints(profile) {
		c = node.Copy(c)
		node.Remove(c, "labelSelector")
		node.Remove(c, "matchLabelKeys")
		list.Content = append(list.Content, c)
	}
	return node.Mapping("podTopologySpread", node.Mapping("defaultConstraints", list))
}

// forClusterAutoscaler returns a configuration with one profile of in-tree plugins, and the names
// of the dropped plugins. Plugin sets without an effect on the simulation are kept if they are
// valid.
func forClusterAutoscaler(doc *schema.Document, profile *yaml.Node) (root *yaml.Node, dropped []string) {
	profile = node.Copy(profile)
	plugins := node.Get(profile, "plugins")
	foreign := func(e *yaml.Node) bool { return !versions.EverInTree(node.Text(e, "name")) }
	for _, set := range schema.PluginSets(plugins) {
		for _, e := range node.Items(set.Node, "enabled") {
			if foreign(e) {
				dropped = append(dropped, node.Text(e, "name"))
			}
		}
		node.Filter(node.Get(set.Node, "enabled"), func(e *yaml.Node) bool { return !foreign(e) })
		node.Filter(node.Get(set.Node, "disabled"), func(e *yaml.Node) bool {
			return node.Text(e, "name") == schema.AllPlugins || !foreign(e)
		})
	}
	node.Filter(node.Get(profile, "pluginConfig"), func(e *yaml.Node) bool { return !foreign(e) })
	// The framework needs one plugin at each of these points, and does not run it.
	for _, required := range []struct{ point, name string }{
		{schema.PointQueueSort, "PrioritySort"}, {schema.PointBind, schema.DefaultBinder},
	} {
		node.Remove(plugins, required.point)
		enabled := schema.Entry(plugins, schema.MultiPoint, "enabled", required.name) != nil
		if schema.IsDisabled(plugins, schema.MultiPoint, required.name) && !enabled {
			schema.Enable(plugins, required.point, required.name, 0)
		}
	}
	return node.Mapping("apiVersion", node.String(doc.API.GroupVersion()),
		"kind", node.String("KubeSchedulerConfiguration"), "profiles", node.Sequence([]*yaml.Node{profile})), dropped
}
