// Package profiles renders the scheduler configuration of one scheduler: a preset, or a user's own
// KubeSchedulerConfiguration or legacy Policy, written for any config API and converted to the one
// that a release reads.
//
// A document goes through four packages. [schema] parses it strictly into YAML nodes that keep
// comments, order and positions, and contains the fields of each config API as data; [policy] turns
// a legacy Policy into a configuration and back; [convert] rewrites a configuration for another
// config API; [validate] checks it against a release's built-in rules. This package calls them in
// order, sets the fields that a deployment needs, and writes the result. Every change is reported
// in a [Note] with its line.
//
// v1beta1, v1beta3 and v1 are written, which together reach every release from 1.20 on; v1beta2 is
// only read.
package profiles

import (
	"github.com/pmk-sched/pmk-sched/profiles/convert"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// Types of the packages below that callers use.
type (
	// Note is one change to a document, and the reason for it.
	Note = schema.Note
	// Problem is one defect of a document, and a proposed fix.
	Problem = schema.Problem
	// Error contains every problem of a document.
	Error = schema.Error
	// Extender is one element of extenders.
	Extender = schema.Extender
	// ExtenderTLS is an extender's tlsConfig.
	ExtenderTLS = schema.ExtenderTLS
	// ManagedResource is an extended resource that an extender manages.
	ManagedResource = schema.ManagedResource
	// Ports are the plain HTTP ports of a configuration.
	Ports = convert.Ports
)

// DefaultExtenderTimeout is the default timeout of a call to an extender.
const DefaultExtenderTimeout = schema.DefaultExtenderTimeout

// SplitNotes returns the texts of notes and warnings, each in the given order, with their places in
// the named file.
func SplitNotes(all []Note, file string) (notes, warnings []string) {
	for _, n := range all {
		if n.IsWarning() {
			warnings = append(warnings, n.In(file))
		} else {
			notes = append(notes, n.In(file))
		}
	}
	return notes, warnings
}
