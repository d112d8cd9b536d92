package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Note is one thing that changed on the way from the source to the rendered
// configuration, and why. Line and Column count from 1 in the source; Line 0 is
// the document as a whole.
type Note struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Loss marks what could not be carried and was left out on demand.
	Loss bool `json:"loss,omitempty"`
	// Warning marks what is carried as it stands, and probably not as wished.
	Warning bool `json:"warning,omitempty"`
}

// String returns the note as "line 3: …", or the bare message for the whole
// document.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Message
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Message)
}

// report collects what changes in a document, and what is wrong with it.
type report struct {
	notes    []Note
	problems problems
	// lossy allows losses: what cannot be converted is a note then, not a problem.
	lossy bool
	// generated are nodes that stand for nothing in the source: there are no notes about them.
	generated map[*yaml.Node]bool
}

// newReport returns the report of a document, with the notes of its parser.
func newReport(doc *document, lossy bool) *report {
	return &report{notes: slices.Clone(doc.notes), lossy: lossy, generated: map[*yaml.Node]bool{}}
}

// note reports what changed at a node of the source; nil is the whole document.
func (r *report) note(n *yaml.Node, format string, args ...any) {
	if !r.generated[n] {
		r.add(Note{Message: fmt.Sprintf(format, args...)}, n)
	}
}

// warn reports what is converted as it is, and probably not meant.
func (r *report) warn(n *yaml.Node, message string) {
	place := at(n)
	r.notes = append(r.notes, Note{Line: place.line, Column: place.column, Message: message, Warning: true})
}

// loss reports what cannot be converted and is left out: a problem, unless losses are allowed.
func (r *report) loss(n *yaml.Node, try, format string, args ...any) {
	if r.lossy {
		r.add(Note{Message: fmt.Sprintf(format, args...), Loss: true}, n)
		return
	}
	r.refuse(n, try, format, args...)
}

// refuse reports a problem at a node of the source.
func (r *report) refuse(n *yaml.Node, try, format string, args ...any) {
	r.problems.add(at(n), try, format, args...)
}

func (r *report) add(added Note, n *yaml.Node) {
	place := at(n)
	added.Line, added.Column = place.line, place.column
	if !slices.Contains(r.notes, added) {
		r.notes = append(r.notes, added)
	}
}

// set writes a field that pmk-sched decides on, and tells where the source had
// something else.
func (r *report) set(m *yaml.Node, name string, value *yaml.Node, why string) {
	key, old := lookup(m, name)
	if key != nil && !isNull(old) && text(old) == value.Value {
		return
	}
	if key != nil && !isNull(old) && why != "" {
		r.note(key, "%s %s becomes %s: %s", name, text(old), value.Value, why)
	}
	put(m, name, value)
}

// sortedNotes returns the notes in the order of the source.
func (r *report) sortedNotes() []Note {
	slices.SortStableFunc(r.notes, func(a, b Note) int { return a.Line - b.Line })
	return r.notes
}
