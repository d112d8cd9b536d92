package load

import (
	"maps"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// missingDefinitions returns a CustomResourceDefinition for each custom resource kind that objects
// do not define. It accepts any field, and has the status as a subresource.
func missingDefinitions(objects []map[string]any, kinds []*snapshot.Kind) []map[string]any {
	var given, made []map[string]any
	for _, o := range objects {
		if o["kind"] == snapshot.DefinitionKind {
			given = append(given, o)
		}
	}
	versions := map[string][]string{} // by resource
	external := map[string]*snapshot.Kind{}
	for _, o := range objects {
		apiVersion, _ := o["apiVersion"].(string)
		if o["kind"] == snapshot.DefinitionKind || !snapshot.IsExternal(apiVersion) {
			continue
		}
		kind, version := snapshot.ExternalKind(o, given)
		at := slices.IndexFunc(kinds, func(k *snapshot.Kind) bool { return k.Group == kind.Group && k.Name == kind.Name })
		if at >= 0 {
			kind = kinds[at]
		}
		resource := kind.GroupResource()
		if known := external[resource]; known != nil && known.Namespaced {
			kind = known
		}
		external[resource] = kind
		if !slices.Contains(versions[resource], version) {
			versions[resource] = append(versions[resource], version)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(external)) {
		if !slices.ContainsFunc(given, func(d map[string]any) bool { return isDefinitionOf(d, resource) }) {
			made = append(made, newDefinition(external[resource], versions[resource]))
		}
	}
	return made
}

func isDefinitionOf(definition map[string]any, resource string) bool {
	metadata, _ := definition["metadata"].(map[string]any)
	return metadata["name"] == resource
}

func newDefinition(kind *snapshot.Kind, versions []string) map[string]any {
	var served []any
	for i, version := range versions {
		served = append(served, map[string]any{
			"name": version, "served": true, "storage": i == 0, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		})
	}
	scope := "Cluster"
	if kind.Namespaced {
		scope = "Namespaced"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": snapshot.DefinitionKind,
		"metadata": map[string]any{
			"name": kind.GroupResource(),
			// Kubernetes groups need it.
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a simulation"},
		},
		"spec": map[string]any{
			"group": kind.Group, "scope": scope, "versions": served,
			"names": map[string]any{"kind": kind.Name, "plural": kind.Resource, "singular": strings.ToLower(kind.Name)},
		},
	}
}
