package apply

import (
	"fmt"
	"strings"
)

// Action is an actual or planned change of one object.
type Action string

// Values for Action.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Recreated  Action = "recreated" // deleted and created again, because a field that differs is immutable
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
	Absent     Action = "absent"  // not found when it was to be deleted
	Skipped    Action = "skipped" // not changed, see the note
)

// Change is one object of a [ChangeSet].
type Change struct {
	Object string `json:"object"` // Kind/namespace/name, or Kind/name at cluster scope
	Action Action `json:"action"`
	// unified diff from the live to the wanted object; keys, tokens and Secret data are masked
	Diff string `json:"diff,omitempty"`
	Note string `json:"note,omitempty"` // for the user, such as whose change is overwritten
}

// ChangeSet lists what [Client.Plan], [Client.Apply], [Client.Delete] or [Client.Prune] changed or
// would change, in the order of the changes.
type ChangeSet []Change

// String returns a line for each object: `Deployment/kube-system/my-scheduler configured`.
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

// Summary returns the objects that were changed, on one line: `Deployment/kube-system/my-scheduler
// configured, …`.
func (s ChangeSet) Summary() string {
	var list []string
	for _, c := range s {
		if (ChangeSet{c}).Changed() {
			list = append(list, c.Object+" "+string(c.Action))
		}
	}
	return strings.Join(list, ", ")
}

// Diff returns the diffs for all objects that differ.
func (s ChangeSet) Diff() string {
	var b strings.Builder
	for _, c := range s {
		b.WriteString(c.Diff)
	}
	return b.String()
}

// Changed reports whether any object was, or would be, changed.
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
