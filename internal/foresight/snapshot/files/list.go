package files

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Fields in every list.
const (
	apiVersionField = "apiVersion"
	kindField       = "kind"
	itemsField      = "items"
	metadataField   = "metadata"
)

// item is a value in a stream: an object, or another value, which is an error unless an object that
// is not a list has it.
type item struct {
	line   int // where it begins
	fields map[string]json.RawMessage
	other  json.RawMessage // if it is not an object
}

// text returns a field if it is a string.
func (i *item) text(field string) string {
	var text string
	if json.Unmarshal(i.fields[field], &text) != nil {
		return ""
	}
	return text
}

// notObject returns an error without the value, which may be long.
func (i *item) notObject() error {
	var value any
	if err := json.Unmarshal(i.other, &value); err != nil {
		return err
	}
	return problem.Invalidf("", "line %d: expected an object, got %s", i.line, typeName(value))
}

// encode returns the value in JSON.
func (i *item) encode() ([]byte, error) {
	if i.fields == nil {
		return i.other, nil
	}
	var out bytes.Buffer
	for field, value := range i.fields {
		name, err := json.Marshal(field)
		if err != nil {
			return nil, err
		}
		out.WriteByte(',')
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	text := append(out.Bytes(), '}')
	if len(i.fields) == 0 {
		return []byte("{}"), nil
	}
	text[0] = '{'
	return text, nil
}

// list is an object that is a list or may turn out to be one: if its fields are sorted, the kind
// comes after the items.
type list struct {
	item

	to      *source
	isArray bool    // the field items is an array
	untyped []*item // items without a type, until the type of the list is known
	passed  int     // items that were handed over
}

func newList(line int, to *source) *list {
	return &list{item: item{line: line, fields: map[string]json.RawMessage{}}, to: to}
}

// set sets a field.
func (l *list) set(field string, value json.RawMessage) error {
	if _, has := l.fields[field]; has {
		return problem.Invalidf("", "line %d: %s: duplicate field %q", l.line, l.name(), field)
	}
	l.fields[field] = value
	return nil
}

// name describes the object.
func (l *list) name() string {
	if kind := l.text(kindField); kind != "" {
		return kind
	}
	return "an object"
}

// mayBeList reports whether the object is a list if it has items.
func (l *list) mayBeList() bool {
	_, has := l.fields[kindField]
	return !has || isList(l.text(kindField))
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// add adds an item. nil is a list, whose items were handed over.
func (l *list) add(i *item) error {
	switch {
	case i == nil:
		l.passed++
		return nil
	case i.fields != nil && i.fields[kindField] != nil:
		l.passed++
		return l.to.object(i)
	case isList(l.text(kindField)) && l.fields[apiVersionField] != nil:
		return l.addUntyped(i)
	}
	l.untyped = append(l.untyped, i)
	return nil
}

// addUntyped hands over an item from a list that the API server returned, which has its items'
// type.
func (l *list) addUntyped(i *item) error {
	kind := strings.TrimSuffix(l.text(kindField), "List")
	switch {
	case i.fields == nil:
		return i.notObject()
	case kind != "":
		name, err := json.Marshal(kind)
		if err != nil {
			return err
		}
		i.fields[kindField], i.fields[apiVersionField] = name, l.fields[apiVersionField]
	}
	l.passed++
	return l.to.object(i)
}

// end returns the object when all its fields are known, or hands over the items that are left and
// returns nil.
func (l *list) end() (*item, error) {
	kind := l.text(kindField)
	null := string(l.fields[itemsField]) == "null"
	switch {
	case isList(kind) && (l.isArray || null):
		return nil, l.endList()
	case l.passed > 0 && kind == "":
		return nil, problem.Invalidf("the text may have been cut off: kubectl prints the kind after the items",
			"line %d: a list without a kind", l.line)
	case l.passed > 0:
		return nil, problem.Invalidf("", "line %d: items of a %s, which is not a list", l.line, kind)
	case kind == "List":
		return nil, problem.Invalidf("", "line %d: a List without items", l.line)
	case l.isArray:
		values := make([]json.RawMessage, 0, len(l.untyped))
		for _, i := range l.untyped {
			text, err := i.encode()
			if err != nil {
				return nil, err
			}
			values = append(values, text)
		}
		text, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		l.fields[itemsField] = text
	}
	return &l.item, nil
}

// endList checks the fields in a list, and hands over the items that are left.
func (l *list) endList() error {
	kind := l.text(kindField)
	for field := range l.fields {
		if !slices.Contains([]string{apiVersionField, kindField, itemsField, metadataField}, field) {
			return problem.Invalidf("write messages of a command to another file (2>)",
				"line %d: %s: unknown field %q", l.line, kind, field)
		}
	}
	for _, i := range l.untyped {
		if err := l.addUntyped(i); err != nil {
			return err
		}
	}
	var metadata struct{ Continue string }
	if text := l.fields[metadataField]; text != nil {
		if err := json.Unmarshal(text, &metadata); err != nil {
			return problem.Invalidf("", "line %d: %s: metadata: %w", l.line, kind, err)
		}
	}
	l.to.page(l, metadata.Continue != "")
	return nil
}
