package scenario

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// NameOf returns an object's namespace and name.
func NameOf(o map[string]any) (namespace, name string) {
	metadata := part(o, "metadata")
	namespace, _ = metadata["namespace"].(string)
	name, _ = metadata["name"].(string)
	return namespace, name
}

// NodeOf returns the name of the node that a pod is bound to.
func NodeOf(pod map[string]any) string {
	node, _ := part(pod, "spec")["nodeName"].(string)
	return node
}

// noScheduler is the prefix of the scheduler name in a pod that is left out. No scheduler has such
// a name.
const noScheduler = "left-out.pmk-sched.io/"

// leftOut returns a copy of a pending pod that every scheduler ignores. restored undoes the change.
func leftOut(pod object) object {
	pod = runtime.DeepCopyJSON(pod)
	spec := specOf(pod)
	name, _ := spec["schedulerName"].(string)
	spec["schedulerName"] = noScheduler + name
	return pod
}

func restored(pod object) object {
	name, _, _ := unstructured.NestedString(pod, "spec", "schedulerName")
	name, ok := strings.CutPrefix(name, noScheduler)
	if !ok {
		return pod
	}
	pod = runtime.DeepCopyJSON(pod)
	if part(pod, "spec")["schedulerName"] = name; name == "" {
		delete(part(pod, "spec"), "schedulerName")
	}
	return pod
}

// isMovable reports whether a pod takes room on a node and could run on another one. DaemonSet pods
// and static pods cannot.
func isMovable(pod object) bool {
	metadata, spec := part(pod, "metadata"), part(pod, "spec")
	if node, _ := spec["nodeName"].(string); node == "" || metadata["deletionTimestamp"] != nil {
		return false
	}
	if IsFinished(pod) {
		return false
	}
	return !slices.ContainsFunc(list(metadata, "ownerReferences"), func(owner any) bool {
		kind := asObject(owner)["kind"]
		return kind == "DaemonSet" || kind == "Node"
	})
}

// IsFinished reports whether a pod has finished.
func IsFinished(pod map[string]any) bool {
	phase := part(pod, "status")["phase"]
	return phase == "Succeeded" || phase == "Failed"
}

// SetUID gives a pod without a UID one, so that other objects can refer to it.
func SetUID(pod map[string]any) {
	metadata := part(pod, "metadata")
	if uid, _ := metadata["uid"].(string); uid == "" && metadata != nil {
		namespace, name := NameOf(pod)
		metadata["uid"] = newUID("Pod", namespace+"/"+name)
	}
}

// unbound returns a copy of a pod without its node and its status, except for the names of claims
// that were made from templates.
func unbound(pod object) object {
	pod = runtime.DeepCopyJSON(pod)
	delete(part(pod, "spec"), "nodeName")
	claims := list(pod, "status", "resourceClaimStatuses")
	delete(pod, "status")
	if claims != nil {
		pod["status"] = object{"resourceClaimStatuses": claims}
	}
	return pod
}

// cordoned returns a node as `kubectl cordon` leaves it: the taint is the node controller's.
func cordoned(node object) object {
	node = runtime.DeepCopyJSON(node)
	spec := specOf(node)
	spec["unschedulable"] = true
	const key = "node.kubernetes.io/unschedulable"
	taints := list(spec, "taints")
	if !slices.ContainsFunc(taints, func(t any) bool { return asObject(t)["key"] == key }) {
		spec["taints"] = append(taints, object{"key": key, "effect": "NoSchedule"})
	}
	return node
}

// isPending reports whether a scheduler would look for a node for a pod.
func isPending(pod object) bool {
	metadata, spec, status := part(pod, "metadata"), part(pod, "spec"), part(pod, "status")
	switch phase, _ := status["phase"].(string); phase {
	case "", "Pending":
	default:
		return false
	}
	return (spec["nodeName"] == nil || spec["nodeName"] == "") && metadata["deletionTimestamp"] == nil
}

// part returns a field that is an object, to read or to change it. It is nil if there is none.
func part(o object, path ...string) object {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	inner, _ := value.(object)
	return inner
}

// list returns a field that is a list, to read it or to change its elements.
func list(o object, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	all, _ := value.([]any)
	return all
}
