package scenario

import (
	"maps"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// IsCreated reports whether an API server has created an object: it has set the UID and the time
// and, in every release, a pod's priority. Admission applied to the object then, and does not apply
// again: the classes may have changed.
func IsCreated(kind *snapshot.Kind, o map[string]any) bool {
	metadata := part(o, "metadata")
	return metadata["uid"] != nil && metadata["creationTimestamp"] != nil &&
		(kind.Name != "Pod" || part(o, "spec")["priority"] != nil)
}

// MarkCreated returns a copy of an object with a UID and a time, so that it is created without
// admission.
func MarkCreated(o map[string]any) map[string]any {
	kind, _ := o["kind"].(string)
	namespace, name := NameOf(o)
	metadata := object{}
	maps.Copy(metadata, part(o, "metadata"))
	if uid, _ := metadata["uid"].(string); uid == "" {
		metadata["uid"] = newUID(kind, namespace+"/"+name)
	}
	if metadata["creationTimestamp"] == nil {
		metadata["creationTimestamp"] = firstAge().Format(time.RFC3339)
	}
	return with(o, "metadata", metadata)
}

// with returns a shallow copy of an object with a new value in a field.
func with(o object, field string, value any) object {
	o = maps.Clone(o)
	o[field] = value
	return o
}

// computed are the pod fields that follow from its PriorityClass.
func computed() []string { return []string{"priority", "priorityClassName", "preemptionPolicy"} }

// HasPriority reports whether a pod is described with its priority, which the API server computes
// when it creates a pod.
func HasPriority(pod map[string]any) bool { return part(pod, "spec")["priority"] != nil }

// WithoutPriority returns a copy of a pod without its priority, which the API server refuses in a
// new pod, and without the class name that it had then.
func WithoutPriority(pod map[string]any) map[string]any {
	spec := object{}
	maps.Copy(spec, part(pod, "spec"))
	for _, field := range computed() {
		delete(spec, field)
	}
	return with(pod, "spec", spec)
}

// Admitted returns an object with the fields that the API server has set in its answer: the
// specification, and a node's status. A pod with a priority keeps it. The scheduler name remains
// empty if it was.
func Admitted(kind *snapshot.Kind, o, answer map[string]any) map[string]any {
	spec, given := object{}, part(o, "spec")
	maps.Copy(spec, part(answer, "spec"))
	if kind.Name == "Node" {
		return MarkCreated(with(with(o, "spec", spec), "status", answer["status"]))
	}
	if HasPriority(o) {
		for _, field := range computed() {
			delete(spec, field)
			if given[field] != nil {
				spec[field] = given[field]
			}
		}
	}
	if given["schedulerName"] == nil {
		delete(spec, "schedulerName")
	}
	return MarkCreated(with(o, "spec", spec))
}

// CheckClasses returns an error if a pod names a PriorityClass or a RuntimeClass that the cluster
// does not have. The error is about the user's input (package problem).
func CheckClasses(pod map[string]any, has func(kind, name string) bool) error {
	spec := part(pod, "spec")
	for field, kind := range map[string]string{
		"priorityClassName": "PriorityClass", "runtimeClassName": "RuntimeClass",
	} {
		if class, _ := spec[field].(string); class != "" && !has(kind, class) {
			namespace, name := NameOf(pod)
			return problem.Invalidf("add its manifest", "pod %s/%s: there is no %s %s", namespace, name, kind, class)
		}
	}
	return nil
}

// NeverPreempt makes a pod wait instead of evicting others.
func NeverPreempt(pod map[string]any) {
	specOf(pod)["preemptionPolicy"] = "Never"
}
