package profiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Managed are the settings of a managed default scheduler.
type Managed struct {
	// Text is the file. It is empty if the service cannot express the strategy.
	Text string `json:"text,omitempty"`
	// Lost are the settings that the service does not accept. With any of them, its scheduler is not
	// the one that was simulated.
	Lost []string `json:"lost"`
}

// ForEKS returns EKS's kubeSchedulerConfig as JSON: the strategies LeastAllocated and MostAllocated
// with the resource weights (EKS API reference, KubeSchedulerConfigRequest and ScoringStrategy).
func (t *Tunable) ForEKS() (Managed, error) {
	m := Managed{Lost: t.foreign()}
	for _, plugin := range t.scoringPlugins() {
		known, _ := schema.InTreeNamed(plugin)
		if weight := t.weight(plugin); weight != known.Weight(t.api) {
			m.Lost = append(m.Lost, fmt.Sprintf("weight %d of %s", weight, plugin))
		}
	}
	for setting, standard := range map[string]string{SettingPercentage: "0", SettingConstraints: ConstraintsSystem} {
		if value := t.Get(setting); value != standard {
			m.Lost = append(m.Lost, setting+": "+value)
		}
	}
	for _, e := range node.Items(t.profile, "pluginConfig") {
		name := node.Text(e, "name")
		if name != schema.ResourcesFit && name != schema.PodTopologySpread && versions.EverInTree(name) {
			m.Lost = append(m.Lost, "arguments of "+name)
		}
	}
	slices.Sort(m.Lost)
	strategy := t.Get(SettingStrategy)
	if strategy != "LeastAllocated" && strategy != "MostAllocated" {
		m.Lost = append(m.Lost, "strategy: EKS has LeastAllocated and MostAllocated, not "+schema.CapacityRatio)
		return m, nil
	}
	type resource struct {
		Name   string `json:"name"`
		Weight int    `json:"weight"`
	}
	resources := []resource{}
	args := node.Get(schema.ConfigOf(t.profile, schema.ResourcesFit), "args", "scoringStrategy")
	for _, e := range node.Items(args, "resources") {
		resources = append(resources, resource{node.Text(e, "name"), max(1, node.Number(e, "weight"))})
	}
	if len(resources) == 0 {
		resources = []resource{{"cpu", 1}, {"memory", 1}}
	}
	fit := map[string]any{"scoringStrategy": map[string]any{"type": strategy, "resources": resources}}
	settings := map[string]any{"kubeSchedulerConfig": map[string]any{"nodeResourcesFit": fit}}
	text, err := json.MarshalIndent(settings, "", "  ")
	m.Text = string(text) + "\n"
	return m, err
}

// ForAKS returns the SchedulerConfiguration of AKS, which accepts in-tree plugins from Kubernetes
// 1.33 on, as a preview (AKS documentation, "Configure advanced scheduler profiles").
func (t *Tunable) ForAKS() (Managed, error) {
	m := Managed{Lost: t.foreign()}
	if t.Get(SettingPercentage) != "0" {
		m.Lost = append(m.Lost, "it is not documented whether "+SettingPercentage+" is accepted")
	}
	root, _ := forClusterAutoscaler(t.doc, t.profile)
	if percentage := node.Get(t.doc.Root, SettingPercentage); percentage != nil {
		node.Put(root, SettingPercentage, percentage)
	}
	raw, err := schema.Encode(root)
	if err != nil {
		return m, err
	}
	literal := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(raw), Style: yaml.LiteralStyle}
	text, err := schema.Encode(node.Mapping("apiVersion", node.String("aks.azure.com/v1alpha1"),
		"kind", node.String("SchedulerConfiguration"), "metadata", node.Mapping("name", node.String("upstream")),
		"spec", node.Mapping("rawConfig", literal)))
	m.Text = string(text)
	return m, err
}

// foreign returns the parts that no managed service accepts: compiled-in plugins and extenders.
func (t *Tunable) foreign() []string {
	lost := []string{}
	var compiled []string
	for _, set := range schema.PluginSets(node.Get(t.profile, "plugins")) {
		for _, e := range node.Items(set.Node, "enabled") {
			if name := node.Text(e, "name"); !versions.EverInTree(name) {
				compiled = append(compiled, name)
			}
		}
	}
	if len(compiled) > 0 {
		lost = append(lost, "compiled-in plugins: "+sortedNames(compiled))
	}
	var urls []string
	for _, e := range node.Items(t.doc.Root, "extenders") {
		urls = append(urls, node.Text(e, "urlPrefix"))
	}
	if len(urls) > 0 {
		lost = append(lost, "extenders: "+strings.Join(urls, ", "))
	}
	return lost
}
