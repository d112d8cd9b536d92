package schema

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// Note is one change to a document, and the reason for it. Line and Column count from 1 in the
// source; Line 0 is the document as a whole.
type Note struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Loss marks a setting that could not be converted and was left out on request.
	Loss bool `json:"loss,omitempty"`
	// Warning marks a setting that was kept, but is probably not intended.
	Warning bool `json:"warning,omitempty"`
}

// String returns the note as "line 3: …", or only the message for the whole document.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Message
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Message)
}

// IsWarning reports whether the user should look at the note: something was lost, or is probably
// not intended.
func (n Note) IsWarning() bool { return n.Loss || n.Warning }

// In returns the note with its place in the named file: "config.yaml:3: …". Without a line or a
// name it is the message. A setting that was left out is "lost".
func (n Note) In(file string) string {
	text := n.Message
	if n.Line > 0 && file != "" {
		text = fmt.Sprintf("%s:%d: %s", file, n.Line, text)
	}
	if n.Loss {
		text = "lost: " + text
	}
	return text
}

// Report collects the changes to a document, and its problems.
type Report struct {
	Notes    []Note
	Problems Problems
	// Lossy turns losses into notes; otherwise they are problems.
	Lossy bool
	// Generated are nodes without a source. They get no notes.
	Generated map[*yaml.Node]bool
}

// NewReport returns a document's report, with the parser's notes.
func NewReport(doc *Document, lossy bool) *Report {
	return &Report{Notes: slices.Clone(doc.Notes), Lossy: lossy, Generated: map[*yaml.Node]bool{}}
}

// Note reports a change at a node in the source. If n is nil, the whole document is changed.
func (r *Report) Note(n *yaml.Node, format string, args ...any) {
	if !r.Generated[n] {
		r.add(Note{Message: fmt.Sprintf(format, args...)}, n)
	}
}

// Warn reports something that is kept, but probably not intended.
func (r *Report) Warn(n *yaml.Node, message string) {
	place := node.At(n)
	r.Notes = append(r.Notes, Note{Line: place.Line, Column: place.Column, Message: message, Warning: true})
}

// Loss reports something that cannot be converted and is left out: a problem, unless losses are
// allowed.
func (r *Report) Loss(n *yaml.Node, try, format string, args ...any) {
	if r.Lossy {
		r.add(Note{Message: fmt.Sprintf(format, args...), Loss: true}, n)
		return
	}
	r.Refuse(n, try, format, args...)
}

// Refuse reports a problem at a node of the source.
func (r *Report) Refuse(n *yaml.Node, try, format string, args ...any) {
	r.Problems.Add(node.At(n), try, format, args...)
}

func (r *Report) add(added Note, n *yaml.Node) {
	place := node.At(n)
	added.Line, added.Column = place.Line, place.Column
	if !slices.Contains(r.Notes, added) {
		r.Notes = append(r.Notes, added)
	}
}

// Set writes a field that pmk-sched decides on, and reports a different value in the source.
func (r *Report) Set(m *yaml.Node, name string, value *yaml.Node, why string) {
	key, old := node.Lookup(m, name)
	if key != nil && !node.IsNull(old) && node.Text(old) == value.Value {
		return
	}
	if key != nil && !node.IsNull(old) && why != "" {
		r.Note(key, "%s %s becomes %s: %s", name, node.Text(old), value.Value, why)
	}
	node.Put(m, name, value)
}

// SortedNotes returns the notes in document order.
func (r *Report) SortedNotes() []Note {
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return a.Line - b.Line })
	return r.Notes
}
