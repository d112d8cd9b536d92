package scenario

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Replay is the scenario in which the pods that are pending when a recording begins are scheduled.
func Replay() Scenario {
	s := Pending()
	s.Name = "replay"
	return s
}

// Arriving returns a pod in a recording as it arrives: without a node and without status, and
// [Schedule], or a static pod on its node, and [Keep].
func Arriving(pod map[string]any) (map[string]any, Action) {
	static := slices.ContainsFunc(list(pod, "metadata", "ownerReferences"), func(owner any) bool {
		return asObject(owner)["kind"] == "Node"
	})
	if static {
		return runtime.DeepCopyJSON(pod), Keep
	}
	pod = unbound(pod)
	delete(part(pod, "metadata"), "deletionTimestamp")
	return pod, Schedule
}
