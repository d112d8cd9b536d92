package profiles

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Autoscaler simulates a scheduler to decide whether pending pods need nodes.
type Autoscaler string

// Autoscalers.
const (
	// ClusterAutoscaler runs the in-tree plugins at PreFilter and Filter for one profile, of
	// --scheduler-config-file (cluster-autoscaler/simulator/framework/handle.go). It exits if the
	// configuration has several profiles, or a plugin that it does not have.
	ClusterAutoscaler Autoscaler = "cluster-autoscaler"
	// Karpenter has rules of its own. Of the configuration it knows the default topology spread
	// constraints, from SCHEDULER_CONFIG (pkg/operator/options/options.go).
	Karpenter Autoscaler = "karpenter"
)

// Autoscalers returns the names of all autoscalers.
func Autoscalers() []string { return []string{string(ClusterAutoscaler), string(Karpenter)} }

// AutoscalerDifference is a reason why an autoscaler decides differently from a scheduler.
type AutoscalerDifference struct {
	// Subject is the part of the configuration. It does not change.
	Subject string
	Text    string
	// Hint may be empty.
	Hint string
}

// CompareAutoscaler returns why an autoscaler decides differently from a scheduler with a
// configuration. It does not know the autoscaler's flags.
func CompareAutoscaler(configuration []byte, a Autoscaler) ([]AutoscalerDifference, error) {
	doc, err := schema.Read("configuration", configuration, false)
	if err != nil {
		return nil, fmt.Errorf("compare the scheduler with %s: %w", a, err)
	}
	c := comparison{autoscaler: a, hint: "`pmk-sched render autoscaler --for " + string(a) + "` writes the part that it reads"}
	if doc.Policy {
		c.add("policy", "it does not read a legacy Policy", "use a KubeSchedulerConfiguration")
		return c.found, nil
	}
	c.profiles(doc.Profiles())
	c.plugins(doc.Profiles())
	c.arguments(doc.Profiles())
	for _, e := range node.Items(doc.Root, "extenders") {
		if extender := schema.ReadExtender(e); extender.FilterVerb != "" {
			c.add("extenders", "it does not ask extender "+extender.URLPrefix+": nodes that the extender refuses count as fitting"+
				c.newest(), "express the decision of the extender by labels or taints, which both read")
		}
	}
	c.always()
	return c.found, nil
}

// comparison collects differences.
type comparison struct {
	autoscaler Autoscaler
	hint       string
	found      []AutoscalerDifference
}

func (c *comparison) add(subject, text, hint string) {
	c.found = append(c.found, AutoscalerDifference{Subject: subject, Text: text, Hint: hint})
}

// newest returns an exception of the newest cluster-autoscaler.
func (c *comparison) newest() string {
	if c.autoscaler == ClusterAutoscaler {
		return " (the newest releases may ask it)"
	}
	return ""
}

// profiles compares the names and the number of profiles.
func (c *comparison) profiles(profiles []*yaml.Node) {
	var names []string
	for _, profile := range profiles {
		names = append(names, profileName(profile))
	}
	if len(names) > 1 {
		c.add("profiles", "it has one configuration for the pods of all profiles: "+strings.Join(names, ", "), c.hint)
	}
	if slices.ContainsFunc(names, func(name string) bool { return name != defaultProfile }) {
		c.add("scheduler-name", "it has one configuration for the pods of all schedulers, also of the default one, and adds "+
			"nodes for the pending pods of each of them", c.hint)
	}
}

// defaultProfile is the name of a profile without one.
const defaultProfile = "default-scheduler"

func profileName(profile *yaml.Node) string {
	if name := node.Text(profile, "schedulerName"); name != "" {
		return name
	}
	return defaultProfile
}

// plugins compares plugins that are compiled in, and default plugins that are disabled.
func (c *comparison) plugins(profiles []*yaml.Node) {
	var compiled, disabled []string
	for _, profile := range profiles {
		for _, set := range schema.PluginSets(node.Get(profile, "plugins")) {
			for _, e := range node.Items(set.Node, "enabled") {
				if name := node.Text(e, "name"); !versions.EverInTree(name) {
					compiled = append(compiled, name)
				}
			}
			if set.Point == schema.MultiPoint || set.Point == "filter" || set.Point == "preFilter" {
				for _, e := range node.Items(set.Node, "disabled") {
					disabled = append(disabled, node.Text(e, "name"))
				}
			}
		}
	}
	if len(compiled) > 0 {
		text := "it does not have plugin " + sortedNames(compiled) + ": nodes that the plugin refuses count as fitting, and pods " +
			"that wait for the plugin get no node, or nodes in vain"
		c.add("plugins", text, c.hint)
	}
	if len(disabled) == 0 {
		return
	}
	names := sortedNames(disabled)
	if names == schema.AllPlugins {
		names = "all default plugins"
	}
	if c.autoscaler == Karpenter {
		c.add("disabled-plugins", "it checks resources, taints, affinity, spread, volumes and host ports by rules of its own, also "+
			"if the scheduler does not run "+names, "")
		return
	}
	c.add("disabled-plugins", "without --scheduler-config-file it runs "+names+", and adds nodes for pods that the scheduler "+
		"places", c.hint)
}

// filterArguments are the arguments of in-tree plugins that decide which nodes fit.
func filterArguments() map[string][]string {
	return map[string][]string{
		"NodeAffinity": {"addedAffinity"}, schema.ResourcesFit: {"ignoredResources", "ignoredResourceGroups"},
	}
}

// arguments compares the arguments of plugins.
func (c *comparison) arguments(profiles []*yaml.Node) {
	for _, profile := range profiles {
		for _, constraint := range defaultConstraints(profile) {
			text := fmt.Sprintf("it does not know the default constraint over %s (%s)", node.Text(constraint, "topologyKey"),
				node.Text(constraint, "whenUnsatisfiable"))
			switch {
			case c.autoscaler == Karpenter:
				c.add("default-constraints", text+" without SCHEDULER_CONFIG, which releases from August 2026 on read", c.hint)
			case node.Text(constraint, "whenUnsatisfiable") == "DoNotSchedule":
				c.add("default-constraints", text+" without --scheduler-config-file", c.hint)
			}
		}
		for _, plugin := range []string{"NodeAffinity", schema.ResourcesFit} {
			for _, argument := range filterArguments()[plugin] {
				if args := node.Get(schema.ConfigOf(profile, plugin), "args"); node.Get(args, argument) == nil {
					continue
				}
				if c.autoscaler == Karpenter {
					c.add("arguments", "it ignores "+argument+" of "+plugin, "")
				} else {
					c.add("arguments", "it does not know "+argument+" of "+plugin+" without --scheduler-config-file", c.hint)
				}
			}
		}
	}
}

// defaultConstraints returns the default topology spread constraints that a profile lists.
func defaultConstraints(profile *yaml.Node) []*yaml.Node {
	return node.Items(node.Get(schema.ConfigOf(profile, "PodTopologySpread"), "args"), "defaultConstraints")
}

// always adds the differences from each scheduler.
func (c *comparison) always() {
	if c.autoscaler == Karpenter {
		c.add("scoring", "it treats preferences as requirements and drops them one after the other if no node fits, and replaces "+
			"nodes that the scheduler would leave: scores, weights and strategies have no effect on it", "")
		return
	}
	c.add("scoring", "it uses the first node that fits: scores, weights, strategies and constraints with ScheduleAnyway have no "+
		"effect on it", "")
	c.add("preemption", "it does not evict pods, and adds no node for pending pods below --expendable-pods-priority-cutoff", "")
}

// sortedNames returns each name once.
func sortedNames(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
