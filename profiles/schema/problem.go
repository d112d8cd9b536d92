package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// Problem is one defect of a configuration. Line and Column count from 1; Line 0 is the document as
// a whole. Try is a proposed fix and may be empty.
type Problem struct {
	Line, Column int
	Message, Try string
	// Accepted marks something that the scheduler accepts and ignores. It is reported as a warning.
	Accepted bool
}

// Warning returns the problem as a warning.
func (p Problem) Warning() Note {
	text := p.Message
	if p.Try != "" {
		text += "; " + p.Try
	}
	return Note{Line: p.Line, Column: p.Column, Message: text, Warning: true}
}

// Error has every problem of a configuration, in document order.
type Error struct {
	// Name is the source's name, usually a file name; may be empty.
	Name     string
	Problems []Problem
}

// NewError returns an error with one problem of a document or request as a whole.
func NewError(try, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Message: fmt.Sprintf(format, args...), Try: try}}}
}

// Error returns one line per problem: name:line:column: message.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Message
		switch {
		case e.Name != "" && p.Line > 0:
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.Name, p.Line, p.Column, p.Message)
		case e.Name != "":
			lines[i] = fmt.Sprintf("%s: %s", e.Name, p.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// Invalid reports that the input is wrong.
func (e *Error) Invalid() bool { return true }

// Hint returns the advice for the first problems, without repetition.
func (e *Error) Hint() string {
	var hints []string
	for _, p := range e.Problems {
		if p.Try != "" && !slices.Contains(hints, p.Try) {
			hints = append(hints, p.Try)
		}
	}
	return strings.Join(hints[:min(len(hints), 3)], "; ")
}

// Problems collects problems, so that all of them are reported at once.
type Problems []Problem

// Add appends a problem at a position, with a formatted message and a proposed fix.
func (p *Problems) Add(at node.Position, try, format string, args ...any) {
	*p = append(*p, Problem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...), Try: try})
}

// AddAccepted is Add for something that the scheduler accepts and ignores.
func (p *Problems) AddAccepted(at node.Position, try, format string, args ...any) {
	p.Add(at, try, format, args...)
	(*p)[len(*p)-1].Accepted = true
}

// Split returns the problems that the scheduler rejects and the accepted ones.
func (p Problems) Split() (rejected, accepted Problems) {
	for _, one := range p {
		if one.Accepted {
			accepted = append(accepted, one)
		} else {
			rejected = append(rejected, one)
		}
	}
	return rejected, accepted
}

// Err returns the problems as an *Error, or nil if there are none.
func (p Problems) Err(name string) error {
	if len(p) == 0 {
		return nil
	}
	return &Error{Name: name, Problems: p.Sorted()}
}

// Sorted returns the problems in document order, without duplicates.
func (p Problems) Sorted() []Problem {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}
