// Package snapshot defines the objects in a cluster that a kube-scheduler reads: their kinds and
// their fields.
//
// [Kinds] lists the kinds. [Kind.Strip] removes everything else from an object, above all
// environment variables, commands, volumes that a scheduler does not read, and annotations. An
// [Anonymizer] replaces names, so that the references between objects still match. [Role] lists the
// permissions that reading the objects needs. A [Header] describes a snapshot; package archive
// reads and writes the file.
//
// The package does no I/O.
package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is an object kind that a scheduler reads.
type Kind struct {
	// Group is the API group. It is empty for the core group.
	Group string
	// Versions are the versions that schedulers at the supported releases read, the preferred one
	// first. It is empty for a custom kind, which is read in the version that the API server prefers.
	Versions []string
	// Resource is the plural name, such as pods; Name is the kind's name, such as Pod.
	Resource, Name string
	Namespaced     bool
	// Required is set if a snapshot without these objects is useless.
	Required bool
	// Custom is set for a kind that the user named because a plugin reads it. Its objects keep all
	// fields except for most of their metadata.
	Custom bool
	// External is set if a CustomResourceDefinition defines the kind.
	External bool

	fields      *tree
	annotations map[string]treatment
	// numbers are the annotations that an Anonymizer keeps if their values are numbers. If it is not
	// nil, [Kind.Strip] keeps every annotation whose value is.
	numbers []string
}

// GroupResource returns the resource's name with its group, such as pods or replicasets.apps.
func (k *Kind) GroupResource() string {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}.String()
}

// HasVersion reports whether schedulers read the kind in a version.
func (k *Kind) HasVersion(version string) bool {
	return k.Custom || slices.Contains(k.Versions, version)
}

// Find returns the kind for objects with an apiVersion and a kind, and the version. The kind is nil
// if no scheduler reads the objects.
func Find(kinds []*Kind, apiVersion, name string) (kind *Kind, version string) {
	group, version := splitAPIVersion(apiVersion)
	for _, k := range kinds {
		if k.Group == group && k.Name == name && k.HasVersion(version) {
			return k, version
		}
	}
	return nil, ""
}

func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}

// APIVersion returns the apiVersion for a group and a version.
func APIVersion(group, version string) string {
	return schema.GroupVersion{Group: group, Version: version}.String()
}

// neverRead are resources that a snapshot never contains, even if a plugin reads them.
func neverRead() []string { return []string{"secrets", "configmaps", "events", "serviceaccounts"} }

// CustomKind returns the kind with a resource's name and group, such as nodemetrics.example.com,
// which a plugin reads. The API server knows the rest.
func CustomKind(groupResource string) (*Kind, error) {
	resource, group, _ := strings.Cut(groupResource, ".")
	if resource == "" || strings.ContainsAny(groupResource, "/* ") {
		return nil, fmt.Errorf("invalid resource %q: must be PLURAL.GROUP, such as nodemetrics.example.com", groupResource)
	}
	if group == "" && slices.Contains(neverRead(), resource) {
		return nil, fmt.Errorf("%s are never part of a snapshot", resource)
	}
	for _, k := range Kinds() {
		if k.GroupResource() == groupResource && !k.External {
			return nil, fmt.Errorf("%s are part of every snapshot", groupResource)
		}
	}
	return &Kind{Group: group, Resource: resource, Custom: true, External: group != "", fields: reads(nil)}, nil
}

// Kinds returns the kinds that schedulers at the supported releases read, in a snapshot's order: an
// object comes after the objects against which the API server checks it at creation.
func Kinds() []*Kind {
	return slices.Concat([]*Kind{
		{
			Resource: "namespaces", Name: "Namespace", Versions: []string{"v1"}, Required: true,
			fields: reads(nil),
		},
		{
			Resource: "nodes", Name: "Node", Versions: []string{"v1"}, Required: true, fields: reads(nodeFields()),
			// NodePreferAvoidPods, a plugin up to 1.25.
			annotations: map[string]treatment{"scheduler.alpha.kubernetes.io/preferAvoidPods": avoidPods},
		},
		{
			Resource: "pods", Name: "Pod", Versions: []string{"v1"}, Namespaced: true, Required: true,
			fields: reads(podFields()).filter("spec.volumes", isVolumeRead).filter("status.conditions",
				isConditionRead).filter("spec.containers.volumeMounts", isMountRead).filter("spec.initContainers.volumeMounts",
				isMountRead),
			// The bundled plugin gpupacking reads the device indices; its arguments name the annotation. The
			// gpushare device plugin reads all three.
			numbers: []string{"ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "ALIYUN_COM_GPU_MEM_ASSIGNED"},
		},
	}, policyKinds(), ownerKinds(), storageKinds(), deviceKinds(), groupKinds(), admissionKinds(),
		pluginKinds())
}

// admissionKinds are read by the API server when a pod or a claim is created, not by schedulers.
// So are PriorityClasses and StorageClasses.
func admissionKinds() []*Kind {
	return []*Kind{
		{
			Group: "node.k8s.io", Resource: "runtimeclasses", Name: "RuntimeClass", Versions: []string{"v1"},
			fields: reads(fields{
				"handler": name, "overhead.podFixed": plain, "scheduling.nodeSelector": labels,
				"scheduling.tolerations": taints,
			}),
		},
		{
			Resource: "limitranges", Name: "LimitRange", Versions: []string{"v1"}, Namespaced: true,
			fields: reads(fields{
				"spec.limits.type": plain, "spec.limits.max": plain, "spec.limits.min": plain, "spec.limits.default": plain,
				"spec.limits.defaultRequest": plain, "spec.limits.maxLimitRequestRatio": plain,
			}),
		},
		{
			// Quotas are not simulated: a note names them.
			Resource: "resourcequotas", Name: "ResourceQuota", Versions: []string{"v1"}, Namespaced: true,
			fields: reads(nil),
		},
	}
}

func policyKinds() []*Kind {
	return []*Kind{
		{
			Group: "scheduling.k8s.io", Resource: "priorityclasses", Name: "PriorityClass", Versions: []string{"v1"},
			fields: reads(fields{"value": plain, "globalDefault": plain, "preemptionPolicy": plain}),
		},
		{
			Group: "policy", Resource: "poddisruptionbudgets", Name: "PodDisruptionBudget", Versions: []string{"v1",
				"v1beta1"}, Namespaced: true,
			fields: reads(fields{
				"spec.selector": selector, "spec.minAvailable": plain, "spec.maxUnavailable": plain,
				"status.disruptionsAllowed": plain, "status.disruptedPods": nameKeys, "status.currentHealthy": plain,
				"status.desiredHealthy": plain, "status.expectedPods": plain,
			}),
		},
	}
}

// ownerKinds are pod owners, and Services. Default spreading reads the selectors in Services,
// ReplicationControllers, ReplicaSets and StatefulSets
// (pkg/scheduler/framework/plugins/helper/spread.go); the rest shows whose pods are moved.
func ownerKinds() []*Kind {
	owner := func(group, resource, name string, more fields) *Kind {
		return &Kind{
			Group: group, Resource: resource, Name: name, Versions: []string{"v1"}, Namespaced: true,
			fields: reads(more.with("spec", fields{"replicas": plain, "parallelism": plain, "completions": plain})),
		}
	}
	matching := fields{"spec.selector": selector}
	return []*Kind{
		owner("", "services", "Service", fields{"spec.selector": labels}),
		owner("", "replicationcontrollers", "ReplicationController", fields{"spec.selector": labels}),
		owner("apps", "deployments", "Deployment", matching),
		owner("apps", "replicasets", "ReplicaSet", matching),
		owner("apps", "statefulsets", "StatefulSet", matching),
		owner("batch", "jobs", "Job", matching),
	}
}
