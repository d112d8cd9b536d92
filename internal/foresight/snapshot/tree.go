package snapshot

import (
	"maps"
	"strings"
)

// treatment is an [Anonymizer]'s way to change a field's value.
type treatment int

const (
	plain treatment = iota // kept: numbers, quantities, enumerations, and names that identify no one
	name                   // a name or a value of a label, or a list of them: replaced
	// a label's or a taint's key, or a list of keys: replaced unless it belongs to Kubernetes
	key
	labels            // a map of labels
	selector          // a LabelSelector
	requirements      // a list of requirements on labels: key, operator and values
	fieldRequirements // the same on fields, whose keys are fields
	taints            // a taint or a toleration, or a list of them: key, operator, value and effect
	uid               // a UID: replaced by another
	// a request's name, or an alternative's name after a slash, or a list of names
	requestName
	image     // the name of an image, or a list of them: replaced, so that equal names stay equal
	owners    // owner references
	nameKeys  // a map whose keys are names
	avoidPods // the value of the annotation preferAvoidPods
	whole     // kept with all its fields; an Anonymizer removes fields that are not in the tree
)

// fields are the fields in a kind that a scheduler reads: dotted paths, which lead into lists
// without an index.
type fields map[string]treatment

// with returns the fields, and the fields of more below prefix.
func (f fields) with(prefix string, more fields) fields {
	all := maps.Clone(f)
	for path, t := range more {
		all[prefix+"."+path] = t
	}
	return all
}

// tree is a tree of field paths.
type tree struct {
	children  map[string]*tree
	treatment treatment
	// reads reports whether a scheduler reads an element in a list. If it is nil, a scheduler reads
	// all elements.
	reads func(element map[string]any) bool
}

func newTree(f fields) *tree {
	root := &tree{children: map[string]*tree{}}
	for path, t := range f {
		root.at(path).treatment = t
	}
	return root
}

// at returns the node at a path, which is added if it is not there.
func (t *tree) at(path string) *tree {
	for part := range strings.SplitSeq(path, ".") {
		if t.children == nil {
			t.children = map[string]*tree{}
		}
		next := t.children[part]
		if next == nil {
			next = &tree{}
			t.children[part] = next
		}
		t = next
	}
	return t
}

// filter keeps only the elements in a list that reads returns true for.
func (t *tree) filter(path string, reads func(element map[string]any) bool) *tree {
	t.at(path).reads = reads
	return t
}

// copyFields returns a value's fields that are in the tree. A value that has another type than the
// tree expects is dropped.
func (t *tree) copyFields(value any) any {
	if t.children == nil || t.treatment == whole {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(t.children))
		for field, child := range t.children {
			if inner, ok := v[field]; ok && inner != nil {
				if inner = child.copyFields(inner); inner != nil {
					kept[field] = inner
				}
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, element := range v {
			object, ok := t.copyFields(element).(map[string]any)
			if ok && (t.reads == nil || t.reads(object)) {
				kept = append(kept, object)
			}
		}
		if t.reads != nil && len(kept) == 0 {
			return nil
		}
		return kept
	}
	return nil
}
