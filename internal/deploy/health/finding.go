// Package health evaluates second schedulers and extenders: it turns their observed state into
// findings, each with a stable code. It does no I/O; package observe reads the state.
package health

import (
	"fmt"
	"strings"
)

// Code identifies a kind of finding. Codes do not change.
type Code string

// Codes of findings.
const (
	Drifted          Code = "drift"
	ObjectMissing    Code = "object-missing"
	ObjectForeign    Code = "object-foreign"
	DeployUnfinished Code = "deployment-unfinished"

	ReplicaMissing   Code = "replica-missing"
	ReplicaUnbound   Code = "replica-unscheduled"
	ReplicaCrashing  Code = "replica-crashing"
	ReplicaNotReady  Code = "replica-not-ready"
	ImageUnavailable Code = "image-unavailable"
	NodeNotReady     Code = "node-not-ready"

	NoLeader     Code = "no-leader"
	LeaseForeign Code = "lease-foreign"
	PodsIgnored  Code = "pods-ignored"

	CertificateExpiring Code = "certificate-expiring"
	CertificateExpired  Code = "certificate-expired"
	ReleaseSkew         Code = "release-skew"
	DependsOnNode       Code = "depends-on-one-node"

	ExtenderMissing     Code = "extender-missing"
	ExtenderNoEndpoints Code = "extender-no-endpoints"
	ExtenderUnreachable Code = "extender-unreachable"

	DefaultNotReady   Code = "default-not-ready"
	NodeFilesDrifted  Code = "node-files-drift"
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

// Unwrap returns an error with the hint of each finding.
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
