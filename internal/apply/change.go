package apply

import (
	"fmt"
	"strings"
)

// Action is what happened, or would happen, to one object.
type Action string

// What happens to an object.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Recreated  Action = "recreated" // deleted and created anew, because a field that differs cannot be changed
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
	Absent     Action = "absent"  // was to be deleted, and was not there
	Skipped    Action = "skipped" // left alone, see the note
)

// Change is one object of a [ChangeSet].
type Change struct {
	Object string `json:"object"` // Kind/namespace/name, or Kind/name at cluster scope
	Action Action `json:"action"`
	Diff   string `json:"diff,omitempty"` // unified diff, live against wanted; keys, tokens and Secret data are masked
	Note   string `json:"note,omitempty"` // what a person should know, such as whose change is overwritten
}

// ChangeSet is what [Client.Plan], [Client.Apply], [Client.Delete] and [Client.Prune] did or would do, in that order.
type ChangeSet []Change

// String lists a line per object: `Deployment/kube-system/my-scheduler configured`.
func (s ChangeSet) String() string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, "%s %s", c.Object, c.Action)
		if c.Note != "" {
			fmt.Fprintf(&b, " (%s)", c.Note)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Diff joins the diffs of all objects that differ.
func (s ChangeSet) Diff() string {
	var b strings.Builder
	for _, c := range s {
		b.WriteString(c.Diff)
	}
	return b.String()
}

// Changed reports whether the cluster is, or would be, another than before.
func (s ChangeSet) Changed() bool {
	for _, c := range s {
		switch c.Action {
		case Unchanged, Absent, Skipped:
		default:
			return true
		}
	}
	return false
}
