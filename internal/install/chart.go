package install

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/helm"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
)

// Chart returns the files of a Helm chart of what Deploy would apply of the plan.
// Keys are left out unless secrets is set.
func Chart(plan *Plan, secrets bool) (map[string][]byte, error) {
	info, o := plan.from.info, plan.from.o
	named := o
	named.Name = helm.Placeholder
	// The rule that keeps replicas apart is there only with more than one.
	named.Replicas = max(2, int(plan.Scheduler.Replicas))
	// The port is the one that was found free for the scheduler itself.
	named.Port = plan.Scheduler.Port
	var err error
	if named.Configuration, err = renameProfile(o.Configuration, o.Name); err != nil {
		return nil, fmt.Errorf("write a chart of %s: %w", plan.Name, err)
	}
	withoutTaken := info
	if info != nil {
		copied := *info
		copied.Scheduler.Taken, withoutTaken = nil, &copied
	}
	template, err := NewPlan(withoutTaken, plan.from.creds, named)
	if err != nil {
		return nil, fmt.Errorf("write a chart of %s: %w", plan.Name, err)
	}
	in := helm.Input{Name: plan.Name, Release: plan.Release.String(), Version: o.Version, NodeSelector: plan.Scheduler.NodeSelector}
	if in.Objects, err = shown(plan.Objects, secrets); err == nil {
		in.Templates, err = shown(template.Objects, secrets)
	}
	if err != nil {
		return nil, fmt.Errorf("write a chart of %s: %w", plan.Name, err)
	}
	return helm.Chart(in)
}

// shown returns objects as they are rendered.
func shown(objects []*unstructured.Unstructured, secrets bool) ([]*unstructured.Unstructured, error) {
	text, err := manifest.YAML(objects, manifest.RenderOptions{ShowSecrets: secrets})
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		data, err := sigsyaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// renameProfile gives the profile of a configuration that is called name the name
// of the placeholder. A configuration with one profile takes any name.
func renameProfile(configuration []byte, name string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(configuration, &doc); err != nil || len(doc.Content) == 0 {
		return configuration, err
	}
	var rename func(n *yaml.Node) bool
	rename = func(n *yaml.Node) bool {
		changed := false
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "schedulerName" && n.Content[i+1].Value == name {
				n.Content[i+1].SetString(helm.Placeholder)
				changed = true
			}
		}
		return slices.ContainsFunc(n.Content, rename) || changed
	}
	if !rename(&doc) {
		return configuration, nil
	}
	return yaml.Marshal(&doc)
}
