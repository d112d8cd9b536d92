package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Fields of a file with a test.
const (
	fieldObjects = "objects"
	fieldExpect  = "expect"
)

// Test is a file with the objects of a cluster, and the expected decisions of a scheduler about the
// pods without a node.
type Test struct {
	Objects []ObjectSource
	Expect  []report.Expectation
}

// ObjectSource is an element of the list of objects: the path of a file or a directory, or Count
// objects like Object.
type ObjectSource struct {
	Path   string
	Object map[string]any
	// Count is 0 for one object with the name of Object; otherwise the names end in -1 and so on.
	Count int
}

// Make returns the objects of a source without a path.
func (s ObjectSource) Make() []map[string]any {
	if s.Count == 0 {
		return []map[string]any{s.Object}
	}
	var all []map[string]any
	for i := range s.Count {
		o := runtime.DeepCopyJSON(s.Object)
		metadata := part(o, "metadata")
		metadata["name"] = fmt.Sprintf("%v-%d", metadata["name"], i+1)
		all = append(all, o)
	}
	return all
}

// ParseTest reads a file with a test. It is strict as [ParseFile] is.
func ParseTest(name string, text []byte) (*Test, error) {
	p := fileParser{name: name}
	t := &Test{}
	err := p.read(text, map[string]func(*yaml.Node) error{
		fieldObjects: func(n *yaml.Node) error {
			return p.items(n, func(item *yaml.Node) error { return p.objectSource(item, &t.Objects) })
		},
		fieldExpect: func(n *yaml.Node) error {
			return p.items(n, func(item *yaml.Node) error { return p.expectation(item, &t.Expect) })
		},
		"steps": p.onlyFor("pmk-sched simulate run"),
	})
	if err != nil {
		return nil, err
	}
	for field, missing := range map[string]bool{fieldObjects: t.Objects == nil, fieldExpect: t.Expect == nil} {
		if missing {
			return nil, problem.Invalidf("", "read %s: %s is required", name, field)
		}
	}
	return t, nil
}

// objectSource reads a path, an object, or an object with a count.
func (p fileParser) objectSource(n *yaml.Node, into *[]ObjectSource) (err error) {
	s := ObjectSource{}
	switch {
	case n.Kind == yaml.ScalarNode:
		err = p.text(&s.Path)(n)
	case slices.ContainsFunc(n.Content, func(key *yaml.Node) bool { return key.Value == "apiVersion" }):
		err = p.object(&s.Object)(n)
	default:
		err = p.fields(n, map[string]func(*yaml.Node) error{"object": p.object(&s.Object), "count": p.number(&s.Count, 1)})
		if err == nil && (s.Object == nil || s.Count == 0) {
			err = p.invalid(n, "expected a path, an object, or count and object")
		}
	}
	*into = append(*into, s)
	return err
}

func (p fileParser) object(into *map[string]any) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		text, err := yaml.Marshal(n)
		if err == nil {
			text, err = sigsyaml.YAMLToJSON(text)
		}
		if err == nil {
			*into, err = snapshot.Decode(text)
		}
		if err != nil {
			return p.invalid(n, "read object: %w", err)
		}
		// Kubernetes reads YAML 1.1, in which n and y are not text.
		if name := part(*into, "metadata")["name"]; name == nil || name == "" {
			return p.invalid(n, "the object has no metadata.name")
		} else if _, ok := name.(string); !ok {
			return p.invalid(n, "metadata.name is %v, not text: put it in quotes", name)
		}
		return nil
	}
}

// expectation reads the expected result for a pod.
func (p fileParser) expectation(n *yaml.Node, into *[]report.Expectation) error {
	e := report.Expectation{}
	results := 0
	result := func(read func(*yaml.Node) error) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			results++
			return read(n)
		}
	}
	var node string
	err := p.fields(n, map[string]func(*yaml.Node) error{
		"pod":  p.text(&e.Pod),
		"node": result(p.text(&node)), "nodes": result(p.texts(&e.Nodes)),
		"pending": result(func(n *yaml.Node) error {
			if e.Pending = true; n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
				return p.invalid(n, `expected a part of the scheduler's reason, or "" for any`)
			}
			e.Reason = n.Value
			return nil
		}),
		"evicted": result(func(n *yaml.Node) error {
			if e.Evicted = true; n.Value != "true" {
				return p.invalid(n, "expected true")
			}
			return nil
		}),
	})
	if err != nil {
		return err
	}
	if node != "" {
		e.Nodes = []string{node}
	}
	if e.Pod == "" {
		return p.invalid(n, "pod is required")
	}
	if results != 1 {
		return p.invalid(n, "expected one of node, nodes, pending and evicted")
	}
	if !strings.Contains(e.Pod, "/") {
		e.Pod = "default/" + e.Pod
	}
	if _, err := path.Match(e.Pod, ""); err != nil {
		return p.invalid(n, "pod %q: %w", e.Pod, err)
	}
	*into = append(*into, e)
	return nil
}
