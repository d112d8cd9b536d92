package schema

import (
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// Field returns a field by name if the config API has it.
func (o Object) Field(name string, a API) (Field, bool) {
	for _, f := range o.Fields {
		if f.Name == name && f.In(a) {
			return f, true
		}
	}
	return Field{}, false
}

// Join appends a field name to a path.
func Join(where, name string) string { return strings.TrimPrefix(where+"."+name, ".") }

// Kind is a value's type.
type Kind int

// Kinds of values that other packages construct or compare.
const (
	kindAny Kind = iota
	kindString
	kindBool
	kindInt
	kindInt64
	kindFloat
	kindDuration
	kindNanoseconds // a number of them
	kindObject
	KindObjects // a list of objects
	kindStrings // a list of strings
)

// Object is a mapping with known fields, and an additional check.
type Object struct {
	Fields []Field
	Also   func(p *Problems, n *yaml.Node, a API, where string)
}

// Field is one object field: the config APIs that have it, and its treatment in other config APIs.
type Field struct {
	Name   string
	Kind   Kind
	Object func() Object // for kindObject and kindObjects
	// APIs are the config APIs that have the field. If it is 0, all have it.
	APIs APISet
	// Since is the first minor release that has it. If it is 0, all have it.
	Since int
	// Lost is the reason for leaving out the field without a loss if the target lacks it. If empty,
	// leaving it out is a loss.
	Lost string
	// Default is the scheduler's default as YAML, for fields that a release may lack: leaving out a
	// field that has it changes nothing.
	Default string
	// Least and Most bound a number; Most 0 means no upper bound.
	Least, Most int
	Bounded     bool
	// Required means that the object is invalid without the field.
	Required bool
	// Hoisted means that a single profile's field can move to the top level of the document.
	Hoisted bool
}

// HasDefault reports whether a value is the scheduler's default, or missing.
func (f Field) HasDefault(value *yaml.Node) bool {
	if node.IsNull(value) {
		return true
	}
	if f.Kind == kindDuration {
		given, err := time.ParseDuration(node.Text(value))
		standard, _ := time.ParseDuration(f.Default)
		return err == nil && f.Default != "" && given == standard
	}
	var given, standard any
	return f.Default != "" && value.Decode(&given) == nil && yaml.Unmarshal([]byte(f.Default), &standard) == nil &&
		reflect.DeepEqual(given, standard)
}

// In reports whether the field exists in the config API, in any release or in the API's minor
// release.
func (f Field) In(a API) bool {
	return (f.APIs == 0 || f.APIs.Has(a.Set)) && (a.Minor == 0 || a.Minor >= f.Since)
}
