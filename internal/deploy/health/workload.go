package health

import (
	"fmt"
	"time"
)

// Kind is the kind of object that a finding describes.
type Kind string

// Kinds.
const (
	Scheduler Kind = "scheduler"
	Extender  Kind = "extender"
	Node      Kind = "node"
	Webhook   Kind = "webhook"
)

// Workload is a second scheduler or an extender that was deployed. Fields that are nil or empty
// were not read, or do not apply; Unknown lists the reasons.
type Workload struct {
	Kind      Kind   `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	Ready     int32  `json:"ready"`
	Wanted    int32  `json:"wanted"`
	// InstalledBy is pmk-sched or Helm.
	InstalledBy string `json:"installedBy"`
	// Release is a scheduler's Kubernetes release. Server is the API server's release if their minors
	// differ.
	Release string `json:"release,omitempty"`
	Server  string `json:"server,omitempty"`
	// Revision is the newest deployed revision. Drift has the live objects' differences from it.
	Revision int           `json:"revision,omitempty"`
	Drift    []ObjectDrift `json:"drift,omitempty"`
	// Verified is the time of the last proof that this scheduler revision binds pods.
	Verified time.Time `json:"verified,omitzero"`
	// Unfinished is a newer revision whose deployment has not ended.
	Unfinished *Unfinished `json:"unfinished,omitempty"`
	// Replicas is nil if the pods could not be listed, and empty if there are none.
	Replicas []Replica `json:"replicas"`
	// Lease is the leader election's lease. It is nil if the scheduler does not use it, or for an
	// extender.
	Lease       *Lease       `json:"lease,omitempty"`
	Credentials *Credentials `json:"credentials,omitempty"`
	// Certificate is the workload's certificate that expires first.
	Certificate *Certificate `json:"certificate,omitempty"`
	// DependsOn is the control-plane node, among several, whose API server all replicas use.
	DependsOn  string      `json:"dependsOn,omitempty"`
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// Route is nil if the scheduler has none.
	Route *Route `json:"route,omitempty"`
	// Calls are the extenders that pmk-sched deployed and that the scheduler calls. Missing are the
	// extenders that are not deployed.
	Calls   []string `json:"calls,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Service is an extender's Service.
	Service *Service `json:"service,omitempty"`
	// Unreachable is the reason why the API server reaches none of an extender's pods, although some
	// are ready.
	Unreachable string  `json:"unreachable,omitempty"`
	Events      []Event `json:"events,omitempty"`
	// Unknown lists the parts that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// String names the workload: "scheduler s in namespace kube-system".
func (w *Workload) String() string {
	return fmt.Sprintf("%s %s in namespace %s", w.Kind, w.Name, w.Namespace)
}

// Unfinished is a revision that is pending.
type Unfinished struct {
	Revision int       `json:"revision"`
	Since    time.Time `json:"since"`
	By       string    `json:"by,omitempty"`
}

// Replica is one pod.
type Replica struct {
	Pod string `json:"pod"`
	// Node is empty if the pod is not bound.
	Node string `json:"node"`
	// NodeProblem is the reason why the node does not run the pod: "is not ready", "does not exist".
	NodeProblem string `json:"nodeProblem,omitempty"`
	Ready       bool   `json:"ready"`
	// Leads reports whether it holds the lease.
	Leads    bool      `json:"leads"`
	Since    time.Time `json:"since"`
	Restarts int32     `json:"restarts"`
	// Terminating is set while the pod is being deleted.
	Terminating bool `json:"terminating,omitempty"`
	// Reason and Message describe a container that waits or has ended, or a pod that is not bound.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Lease is the leader election's state.
type Lease struct {
	// Exists is false if the lease does not exist.
	Exists bool   `json:"exists"`
	Holder string `json:"holder"`
	// Since is the time when the holder acquired the lease, Renewed the time of its last renewal.
	Since    time.Time     `json:"since,omitzero"`
	Renewed  time.Time     `json:"renewed,omitzero"`
	Duration time.Duration `json:"-"`
	// Foreign is set if no replica is the holder.
	Foreign bool `json:"foreign,omitempty"`
}

// Credentials are a scheduler's credentials, without secrets.
type Credentials struct {
	Mode    string     `json:"mode"`
	Subject string     `json:"subject,omitempty"`
	Source  string     `json:"source"`
	Renewal string     `json:"renewal"`
	Expires *time.Time `json:"expires,omitempty"`
}

// Certificate is a certificate in an object, or in a file on the node.
type Certificate struct {
	Object  string    `json:"object"`
	Subject string    `json:"subject"`
	Expires time.Time `json:"expires"`
}

// Waiting are the pods that name the scheduler and are not bound. Pods with scheduling gates do not
// count.
type Waiting struct {
	Pods int `json:"pods"`
	// Oldest is the pod, namespace/name, that waits longest, since Since.
	Oldest string    `json:"oldest,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Ignored is the number of pods that no scheduler has reported on. OldestIgnored is the oldest
	// one.
	Ignored       int       `json:"ignored"`
	OldestIgnored string    `json:"oldestIgnored,omitempty"`
	IgnoredSince  time.Time `json:"ignoredSince,omitzero"`
}

// Route is the state of a scheduler's route.
type Route struct {
	// Bound and Waiting are the numbers of pods that got the scheduler by the route, with a node and
	// without one.
	Bound   int `json:"bound"`
	Waiting int `json:"waiting"`
	// Share of the selected pods that are routed, in percent.
	Share int `json:"share"`
	// Rollout is nil unless a rollout has set the share.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Suspended is set while new pods do not get the scheduler, because no replica led.
	Suspended      bool      `json:"suspended,omitempty"`
	SuspendedSince time.Time `json:"suspendedSince,omitzero"`
	// Unguarded is set if no controller ends the route when no replica leads.
	Unguarded bool `json:"unguarded,omitempty"`
}

// Rollout is the state of a rollout, as the deployed revision records it.
type Rollout struct {
	// Step is the number of the step that has the share, of Steps.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	// Gates of the steps.
	Gates []string `json:"gates"`
	// Verdict is empty while the rollout runs, or was killed. Reason explains it.
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Add counts a pod that is not bound, created at a time; tried reports whether a scheduler has
// reported on it.
func (w *Waiting) Add(pod string, created time.Time, tried bool) {
	w.Pods++
	if w.Oldest == "" || created.Before(w.Since) {
		w.Oldest, w.Since = pod, created
	}
	if tried {
		return
	}
	w.Ignored++
	if w.OldestIgnored == "" || created.Before(w.IgnoredSince) {
		w.OldestIgnored, w.IgnoredSince = pod, created
	}
}

// Service is an extender's Service.
type Service struct {
	Exists bool `json:"exists"`
	// Endpoints counts its ready endpoints.
	Endpoints int `json:"endpoints"`
}

// Event is the last occurrence of an event for a replica.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}
