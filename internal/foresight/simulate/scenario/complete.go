package scenario

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Creation describes how a snapshot's object is created.
type Creation struct {
	// Object is the object in the create request. The API server drops its status, except for nodes.
	Object map[string]any
	// Status is written afterwards. It is nil if there is nothing to write.
	Status map[string]any
	// Deleted is set if the object is being deleted.
	Deleted bool
}

// placeholder is the value for required fields that no scheduler reads.
const placeholder = "snapshot"

// Complete returns how an object is created, and whether it is: Deployments and Jobs act through
// controllers, which a simulation does not have, and the API server has classes before it starts
// (package load). uids returns an object's new UID; it may not know it.
func Complete(kind *snapshot.Kind, o map[string]any, uids func(old string) (string, bool)) (Creation, bool) {
	switch kind.GroupResource() {
	case "deployments.apps", "jobs.batch", "resourcequotas":
		return Creation{}, false
	}
	o = runtime.DeepCopyJSON(o)
	c := Creation{Object: o, Deleted: part(o, "metadata")["deletionTimestamp"] != nil}
	clearMetadata(part(o, "metadata"), uids)
	completeSpec(kind.GroupResource(), o, uids)
	status := part(o, "status")
	if kind.Name != "Node" {
		delete(o, "status")
		if len(status) > 1 || len(status) == 1 && status["phase"] != "Pending" { // pods and claims are created as pending
			c.Status = object{"status": status}
		}
	}
	return c, true
}

// clearMetadata removes the fields that the API server sets, and replaces the owners' UIDs.
func clearMetadata(metadata object, uids func(string) (string, bool)) {
	for _, field := range []string{"uid", "creationTimestamp", "deletionTimestamp"} {
		delete(metadata, field)
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		replaceUID(owner, uids)
	}
}

// replaceUID replaces a reference's UID, if the new one is known.
func replaceUID(reference any, uids func(string) (string, bool)) {
	r, _ := reference.(object)
	old, _ := r["uid"].(string)
	if replaced, ok := uids(old); ok {
		r["uid"] = replaced
	}
}

// completeSpec sets the fields that the API server requires.
func completeSpec(resource string, o object, uids func(string) (string, bool)) {
	spec := part(o, "spec")
	switch resource {
	case "pods":
		for _, v := range list(spec, "volumes") {
			if iscsi := part(asObject(v), "iscsi"); iscsi != nil {
				iscsi["targetPortal"] = placeholder
			}
		}
		completeMounts(spec)
	case "priorityclasses.scheduling.k8s.io":
		delete(o, "globalDefault") // package load stores the class that has it
	case "storageclasses.storage.k8s.io":
		delete(part(o, "metadata"), "annotations") // likewise
	case "services":
		spec = specOf(o)
		spec["clusterIP"] = "None" // no address is needed, and there are few
	case "replicationcontrollers":
		spec = specOf(o)
		spec["template"] = template(part(spec, "selector"))
	case "replicasets.apps", "statefulsets.apps":
		spec = specOf(o)
		spec["template"] = template(matching(part(spec, "selector")))
		if resource == "statefulsets.apps" {
			spec["serviceName"] = placeholder
		}
	case "persistentvolumes":
		spec = specOf(o)
		completeVolume(spec)
		replaceUID(spec["claimRef"], uids)
	case "csinodes.storage.k8s.io":
		for _, d := range list(specOf(o), "drivers") {
			asObject(d)["nodeID"] = placeholder
		}
		if spec["drivers"] == nil {
			part(o, "spec")["drivers"] = []any{}
		}
	case "resourceclaims.resource.k8s.io":
		for _, consumer := range list(o, "status", "reservedFor") {
			replaceUID(consumer, uids)
		}
	}
}

// completeMounts adds the mount paths that a snapshot does not have, and their volumes.
func completeMounts(spec object) {
	volumes := list(spec, "volumes")
	for _, c := range slices.Concat(list(spec, "initContainers"), list(spec, "containers")) {
		for i, m := range list(asObject(c), "volumeMounts") {
			mount := asObject(m)
			if mount["mountPath"] != nil {
				continue
			}
			mount["mountPath"] = fmt.Sprintf("/%s-%d", placeholder, i)
			if !slices.ContainsFunc(volumes, func(v any) bool { return asObject(v)["name"] == mount["name"] }) {
				volumes = append(volumes, object{"name": mount["name"], "emptyDir": object{}})
				spec["volumes"] = volumes
			}
		}
	}
}

// specOf returns an object's specification, which is added if it is missing.
func specOf(o object) object {
	if spec, ok := o["spec"].(object); ok {
		return spec
	}
	spec := object{}
	o["spec"] = spec
	return spec
}

func asObject(value any) object {
	o, _ := value.(object)
	if o == nil {
		return object{}
	}
	return o
}

// completeVolume adds a source to a PersistentVolume whose own source no scheduler reads.
func completeVolume(spec object) {
	sources := []string{"csi", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "vsphereVolume"}
	if !slices.ContainsFunc(sources, func(source string) bool { return spec[source] != nil }) {
		spec["hostPath"] = object{"path": "/" + placeholder}
	}
}

// template returns a pod template with labels.
func template(labels object) object {
	return object{
		"metadata": object{"labels": labels},
		"spec":     object{"containers": []any{object{"name": placeholder, "image": placeholder}}},
	}
}

// matching returns labels that a selector matches: a ReplicaSet's template must have them.
func matching(selector object) object {
	labels := maps.Clone(part(selector, "matchLabels"))
	if labels == nil {
		labels = object{}
	}
	for _, e := range list(selector, "matchExpressions") {
		expression := asObject(e)
		key, _ := expression["key"].(string)
		if _, has := labels[key]; has || key == "" {
			continue
		}
		switch values := list(expression, "values"); expression["operator"] {
		case "In":
			if len(values) > 0 {
				labels[key] = values[0]
			}
		case "Exists":
			labels[key] = placeholder
		}
	}
	return labels
}

// References returns the UIDs that an object refers to: its owners, a volume's claim, and a
// ResourceClaim's consumers.
func References(kind *snapshot.Kind, o map[string]any) []string {
	var uids []string
	add := func(reference any) {
		if uid, ok := asObject(reference)["uid"].(string); ok && uid != "" {
			uids = append(uids, uid)
		}
	}
	for _, owner := range list(o, "metadata", "ownerReferences") {
		add(owner)
	}
	switch kind.GroupResource() {
	case "persistentvolumes":
		add(part(o, "spec")["claimRef"])
	case "resourceclaims.resource.k8s.io":
		for _, consumer := range list(o, "status", "reservedFor") {
			add(consumer)
		}
	}
	return uids
}
