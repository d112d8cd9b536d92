// Package health evaluates second schedulers and extenders: it turns their observed state into
// findings, each with a stable code. It does no I/O; package observe reads the state.
package health

import (
	"fmt"
	"strings"
)

// Code identifies a kind of finding. Codes do not change.
type Code string

// Codes of findings. docs/findings.md has their comments.
const (
	// Drifted: a field of an object differs from the revision. The detail names each field.
	Drifted Code = "drift"
	// ObjectMissing: an object of the revision does not exist.
	ObjectMissing Code = "object-missing"
	// ObjectForeign: an object has lost the labels of pmk-sched, so that deploy and uninstall do
	// not change it.
	ObjectForeign Code = "object-foreign"
	// DeployUnfinished: a deployment is in progress, or was killed. Objects are not compared.
	DeployUnfinished Code = "deployment-unfinished"

	// ReplicaMissing: there are fewer pods than replicas.
	ReplicaMissing Code = "replica-missing"
	// ReplicaUnbound: a pod of the scheduler or the extender has no node.
	ReplicaUnbound Code = "replica-unscheduled"
	// ReplicaCrashing: a container exits or cannot be created.
	ReplicaCrashing Code = "replica-crashing"
	// ReplicaNotReady: a container runs and is not ready.
	ReplicaNotReady Code = "replica-not-ready"
	// ImageUnavailable: a node does not get the image.
	ImageUnavailable Code = "image-unavailable"
	// NodeNotReady: the node of a replica is not ready, or does not exist.
	NodeNotReady Code = "node-not-ready"

	// NoLeader: the lease does not exist, has no holder, or was not renewed for 30 s longer than
	// its duration; or it is held, and the Deployment has no replicas.
	NoLeader Code = "no-leader"
	// LeaseForeign: another process holds the lease. On the host network this needs the metrics of
	// all replicas.
	LeaseForeign Code = "lease-foreign"
	// PodsIgnored: pods wait for more than a minute and the scheduler has not reported on them.
	// Pods that do not fit are not a finding.
	PodsIgnored Code = "pods-ignored"

	// RouteSuspended: no replica led, and new pods do not get the scheduler until one does again.
	RouteSuspended Code = "route-suspended"
	// RouteUnguarded: no controller ends the route if no replica leads, so that its pods would wait.
	RouteUnguarded Code = "route-unguarded"
	// ArbiterUndecided: the webhook of the arbiter is registered and bindings are not checked: no
	// replica leads, or API servers do not trust the webhook. They are allowed.
	ArbiterUndecided Code = "arbiter-undecided"

	// CertificateExpiring: a certificate expires within 30 days.
	CertificateExpiring Code = "certificate-expiring"
	// CertificateExpired: a certificate has expired.
	CertificateExpired Code = "certificate-expired"
	// ReleaseSkew: the scheduler, or the replaced default scheduler of a node, has another minor
	// release than the API server.
	ReleaseSkew Code = "release-skew"
	// DependsOnNode: all replicas use the API server of one of several control-plane nodes.
	DependsOnNode Code = "depends-on-one-node"

	// ExtenderMissing: a scheduler calls an extender that is not deployed.
	ExtenderMissing Code = "extender-missing"
	// ExtenderNoEndpoints: the Service of an extender does not exist, or has no ready endpoints.
	ExtenderNoEndpoints Code = "extender-no-endpoints"
	// ExtenderUnreachable: the API server reaches none of the ready pods of an extender.
	ExtenderUnreachable Code = "extender-unreachable"

	// DefaultNotReady: the replaced default scheduler of a node is not ready.
	DefaultNotReady Code = "default-not-ready"
	// NodeFilesDrifted: files of this node differ from the files that replace wrote. The detail is
	// the diff.
	NodeFilesDrifted Code = "node-files-drift"
	// ReplaceUnfinished: replace was interrupted on this node.
	ReplaceUnfinished Code = "replacement-unfinished"
)

// Finding is a failed check.
type Finding struct {
	Code      Code   `json:"code"`
	Kind      Kind   `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Text      string `json:"text"`
	Hint      string `json:"hint,omitempty"`
	// Detail has more lines, such as a diff.
	Detail string `json:"detail,omitempty"`
}

// String is one line, without hint and detail: "scheduler s in namespace kube-system: …
// [no-leader]".
func (f Finding) String() string {
	who := string(f.Kind) + " " + f.Name
	if f.Namespace != "" {
		who += " in namespace " + f.Namespace
	}
	return fmt.Sprintf("%s: %s [%s]", who, f.Text, f.Code)
}

// FindingsError is returned when everything was read and a check failed.
type FindingsError struct{ Findings []Finding }

// Error has a line for each finding, with its detail.
func (e *FindingsError) Error() string {
	var lines []string
	for _, f := range e.Findings {
		lines = append(lines, f.String())
		if f.Detail != "" {
			lines = append(lines, strings.TrimRight(f.Detail, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns an error with each finding's hint.
func (e *FindingsError) Unwrap() []error {
	var list []error
	for _, f := range e.Findings {
		list = append(list, hint(f.Hint))
	}
	return list
}

// CheckFailed reports that the status was read and a check failed.
func (e *FindingsError) CheckFailed() bool { return true }

// hint is a suggestion for the user, as package problem finds it in an error.
type hint string

func (h hint) Error() string { return string(h) }

// Hint returns the suggestion.
func (h hint) Hint() string { return string(h) }
