package schema

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field returns the field of that name as the config API has it.
func (o Object) Field(name string, a API) (Field, bool) {
	for _, f := range o.Fields {
		if f.Name == name && f.In(a) {
			return f, true
		}
	}
	return Field{}, false
}

func Join(where, name string) string { return strings.TrimPrefix(where+"."+name, ".") }

// Kind is the form of a value.
type Kind int

const (
	kindAny Kind = iota
	kindString
	kindBool
	kindInt
	kindFloat
	kindDuration
	kindNanoseconds // a number of them
	kindObject
	KindObjects // a list of objects
	kindStrings // a list of strings
)

// Object is a mapping with known fields, and what else is to be checked about it.
type Object struct {
	Fields []Field
	Also   func(p *Problems, n *yaml.Node, a API, where string)
}

// Field is one field of an object: where it exists, and what becomes of it where
// it does not.
type Field struct {
	Name   string
	Kind   Kind
	Object func() Object // for kindObject and kindObjects
	// APIs are the config APIs that have the field; 0 means all.
	APIs APISet
	// Since is the first minor whose config APIs have it; 0 means always.
	Since int
	// Lost says why the field can be left out where the target lacks it. Empty: it
	// cannot, and saying so is an error, unless a rule has taken it away before.
	Lost string
	// Least and most bound a number; most 0 means no upper bound.
	Least, Most int
	Bounded     bool
	// Required says that the object means nothing without the field.
	Required bool
	// Hoisted says that the field of an only profile can move to the top of the
	// document, where the target has it.
	Hoisted bool
}

// In says whether the field exists in a config API: in any release, or as one
// minor reads it.
func (f Field) In(a API) bool {
	return (f.APIs == 0 || f.APIs.Has(a.Set)) && (a.Minor == 0 || a.Minor >= f.Since)
}
