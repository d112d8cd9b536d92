package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format and Version identify the files that this package describes. The version is raised when a
// reader of the previous version would misunderstand a file.
const (
	Format  = "pmk-sched.io/snapshot"
	Version = 1
)

// Snapshot sources.
const (
	FromCluster = "cluster"
	FromFiles   = "files"
)

// Header describes a snapshot. Two snapshots of the same state differ only in the header.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// CreatedBy is the pmk-sched version, Time when it began to read.
	CreatedBy string    `json:"createdBy"`
	Time      time.Time `json:"time"`
	// Source is [FromCluster] or [FromFiles]; Release is the API server's release, such as v1.24.3, if
	// it is known.
	Source  string `json:"source"`
	Release string `json:"release,omitempty"`
	// ResourceVersion is the cluster version that was read. Consistent is set if all objects have it.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Consistent      bool   `json:"consistent"`
	// Anonymized is set if names are replaced.
	Anonymized bool `json:"anonymized"`
	// Resources are the object kinds in the order in which the file has them.
	Resources []Resource `json:"resources"`
	// Skipped are the missing kinds, each with a reason.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Pods counts the pods by their state.
	Pods PodCounts `json:"pods"`
	// Recording describes the changes after the snapshot, if the file is a recording.
	Recording *Recording `json:"recording,omitempty"`
	// Notes describe special properties of the source.
	Notes []string `json:"notes,omitempty"`
}

// Resource is an object kind in a snapshot.
type Resource struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	// Custom is set for kinds that the user named.
	Custom  bool `json:"custom,omitempty"`
	Objects int  `json:"objects"`
	// Bytes is the objects' size before compression.
	Bytes int64 `json:"bytes"`
	// ResourceVersion is the version at which the objects were read, if it differs from the
	// snapshot's ResourceVersion.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// GroupResource returns the resource's name with its group, such as pods or replicasets.apps.
func (r *Resource) GroupResource() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
}

// Skipped is a kind that a snapshot does not have.
type Skipped struct {
	Resource string `json:"resource"` // with the group
	Reason   string `json:"reason"`
}

// Reasons for a [Skipped] kind.
const (
	NotServed      = "not served by this release"
	NotPermitted   = "no permission"
	UnknownVersion = "served in a version that pmk-sched does not know"
)

// PodCounts counts pods by their state: Finished ones hold no resources.
type PodCounts struct {
	Running  int `json:"running"` // bound to a node
	Pending  int `json:"pending"`
	Finished int `json:"finished"`
}

// Count adds a pod.
func (c *PodCounts) Count(pod map[string]any) {
	spec, _ := pod["spec"].(object)
	status, _ := pod["status"].(object)
	node, _ := spec["nodeName"].(string)
	switch phase, _ := status["phase"].(string); {
	case phase == "Succeeded" || phase == "Failed":
		c.Finished++
	case node == "":
		c.Pending++
	default:
		c.Running++
	}
}
