package scenario

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Waiting is a pod that waits to be scheduled, with the fields that determine its place in the
// queue.
type Waiting struct {
	Key      string // namespace/name
	UID      string // in the snapshot
	Priority int64
	Created  string // RFC 3339, in UTC
	Pod      []byte // JSON
}

// NewWaiting returns the pod with its place in the queue. text is the pod as JSON.
func NewWaiting(key string, pod map[string]any, text []byte) Waiting {
	metadata := part(pod, "metadata")
	w := Waiting{Key: key, Pod: text}
	w.UID, _ = metadata["uid"].(string)
	w.Created, _ = metadata["creationTimestamp"].(string)
	if priority, ok := part(pod, "spec")["priority"].(json.Number); ok {
		w.Priority, _ = priority.Int64() // the API server refuses other numbers
	}
	return w
}

// Sort orders pods as a kube-scheduler's queue does (pkg/scheduler/framework/plugins/queuesort): by
// priority, then by age.
func Sort(pods []Waiting) {
	slices.SortFunc(pods, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Key, b.Key))
	})
}

// UseProfile has a pod name a profile that the simulated scheduler has. It reports whether the pod
// named another scheduler; a manifest may name none.
func UseProfile(pod map[string]any, profiles []string, otherwise string) bool {
	spec := part(pod, "spec")
	name, _ := spec["schedulerName"].(string)
	if spec == nil || slices.Contains(profiles, name) || name == "" && slices.Contains(profiles, "default-scheduler") {
		return false
	}
	spec["schedulerName"] = otherwise
	return name != ""
}
