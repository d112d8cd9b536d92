package snapshot

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pluginKinds are the custom resources that the bundled plugins coscheduling, elasticquota and
// numaaware read.
func pluginKinds() []*Kind {
	const scheduling = "scheduling.x-k8s.io"
	return []*Kind{
		{
			Group: scheduling, Resource: "podgroups", Name: "PodGroup", Versions: []string{"v1alpha1"}, Namespaced: true,
			External: true,
			fields: reads(fields{"spec.minMember": plain, "spec.minResources": plain,
				"spec.scheduleTimeoutSeconds": plain}),
		},
		{
			Group: scheduling, Resource: "elasticquotas", Name: "ElasticQuota", Versions: []string{"v1alpha1"},
			Namespaced: true, External: true,
			fields: reads(fields{"spec.min": plain, "spec.max": plain, "status.used": plain}),
		},
		{
			Group: "topology.node.k8s.io", Resource: "noderesourcetopologies", Name: "NodeResourceTopology",
			Versions: []string{"v1alpha2", "v1alpha1"}, External: true,
			fields: reads(fields{
				"topologyPolicies": plain, "attributes.name": plain, "attributes.value": plain, "zones.name": plain,
				"zones.type": plain, "zones.parent": plain, "zones.costs": plain, "zones.resources": plain,
				"zones.attributes.name": plain, "zones.attributes.value": plain,
			}),
		},
	}
}

// DefinitionKind is the kind of the objects that define custom resources.
const DefinitionKind = "CustomResourceDefinition"

// IsExternal reports whether an API version's objects are custom resources: no Kubernetes release
// serves the group without a definition, and it is not a group for configuration files.
func IsExternal(apiVersion string) bool {
	group, _ := splitAPIVersion(apiVersion)
	return strings.Contains(group, ".") && !slices.Contains(builtInGroups(), strings.TrimSuffix(group, ".k8s.io")) &&
		!strings.HasSuffix(group, ".config.k8s.io") && group != "pmk-sched.io"
}

// builtInGroups are the Kubernetes groups whose names end in .k8s.io, without this end.
func builtInGroups() []string {
	return []string{
		"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
		"coordination", "discovery", "events", "flowcontrol.apiserver", "imagepolicy", "internal.apiserver", "networking",
		"node", "rbac.authorization", "resource", "scheduling", "settings", "storage", "storagemigration",
	}
}

// ExternalKind returns a custom resource's kind by one of its objects, and its version. Its
// definition, which is needed for an unusual plural, is one of definitions if it is known. Without
// a definition, the kind has namespaces if the object has.
func ExternalKind(o map[string]any, definitions []map[string]any) (*Kind, string) {
	apiVersion, _ := o["apiVersion"].(string)
	name, _ := o["kind"].(string)
	if kind, version := Find(pluginKinds(), apiVersion, name); kind != nil {
		return kind, version
	}
	group, version := splitAPIVersion(apiVersion)
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: version, Kind: name})
	metadata, _ := o["metadata"].(object)
	k := &Kind{Group: group, Name: name, Resource: plural.Resource, Custom: true, External: true, fields: reads(nil)}
	namespace, _ := metadata["namespace"].(string)
	k.Namespaced = namespace != ""
	at := slices.IndexFunc(definitions, func(d map[string]any) bool {
		spec, _ := d["spec"].(object)
		names, _ := spec["names"].(object)
		return spec["group"] == group && names["kind"] == name
	})
	if at >= 0 {
		spec, _ := definitions[at]["spec"].(object)
		names, _ := spec["names"].(object)
		k.Resource, _ = names["plural"].(string)
		k.Namespaced = spec["scope"] == "Namespaced"
	}
	return k, version
}
