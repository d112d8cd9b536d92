package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Type for a file with steps.
const (
	fileAPIVersion = v1alpha1.APIVersion
	fileKind       = "Scenario"
)

// DefaultLimit limits the workload copies that are tried in addition to the requested copies.
const DefaultLimit = 1000

// Step is a scenario before its files are read: a command with its arguments and flags, or an
// element in a file.
type Step struct {
	// Scenario is the command's name: pending, replace-all, drain, add or nodes.
	Scenario string
	// Nodes are the nodes to drain.
	Nodes []string
	// Files are the manifests to add, Count copies of them, and then at most Limit more.
	Files        []string
	Count, Limit int
	// Add are the nodes to add.
	Add []NodesToAdd
}

// NodesToAdd are new nodes from one template: a node's name, or a file.
type NodesToAdd struct {
	Template string
	Count    int
}

// IsFile reports whether the template is a file.
func (n NodesToAdd) IsFile() bool {
	return strings.ContainsRune(n.Template, '/') || strings.HasSuffix(n.Template, ".yaml") ||
		strings.HasSuffix(n.Template, ".yml") || strings.HasSuffix(n.Template, ".json")
}

// ParseNodesToAdd parses TEMPLATE=N.
func ParseNodesToAdd(text string) (NodesToAdd, error) {
	at := strings.LastIndexByte(text, '=')
	if at > 0 {
		if n, err := strconv.Atoi(text[at+1:]); err == nil && n > 0 && n <= maxCount {
			return NodesToAdd{Template: text[:at], Count: n}, nil
		}
	}
	return NodesToAdd{}, fmt.Errorf("%q: must be TEMPLATE=N with N between 1 and %d", text, maxCount)
}

// maxCount bounds node and copy numbers.
const maxCount = 100_000

// ParseFile reads a file's steps. It is strict: the error is an input error (package problem), with
// the line and column.
func ParseFile(name string, text []byte) ([]Step, error) {
	p := fileParser{name: name}
	var steps []Step
	err := p.read(text, map[string]func(*yaml.Node) error{
		"steps": func(n *yaml.Node) error {
			return p.items(n, func(item *yaml.Node) error {
				step, err := p.step(item)
				steps = append(steps, step)
				return err
			})
		},
	})
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, problem.Invalidf("", "read %s: steps is required", name)
	}
	return steps, nil
}

// ParseSteps reads a test's steps in the file with a name. It is strict as [ParseFile] is.
func ParseSteps(name string, steps []v1alpha1.TestStep) ([]Step, error) {
	p := fileParser{name: name}
	var all []Step
	for _, s := range steps {
		step, err := p.step(s.Node)
		if err != nil {
			return nil, err
		}
		all = append(all, step)
	}
	return all, nil
}

// read reads the fields in a file that has one document of the type.
func (p fileParser) read(text []byte, fields map[string]func(*yaml.Node) error) error {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := in.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return problem.Invalidf("", "read %s: the file is empty", p.name)
		}
		return problem.Invalidf("", "read %s: %s", p.name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := in.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return problem.Invalidf("keep one scenario in one file", "read %s: the file has a second document", p.name)
	}
	var apiVersion, kind string
	fields["apiVersion"], fields["kind"] = p.text(&apiVersion), p.text(&kind)
	fields["metadata"] = func(n *yaml.Node) error {
		var ignored string
		return p.fields(n, map[string]func(*yaml.Node) error{"name": p.text(&ignored)})
	}
	if err := p.fields(document.Content[0], fields); err != nil {
		return err
	}
	if apiVersion != fileAPIVersion || kind != fileKind {
		return problem.Invalidf(fmt.Sprintf("start the file with apiVersion: %s and kind: %s", fileAPIVersion, fileKind),
			"read %s: expected a %s, got %s %q", p.name, fileKind, apiVersion, kind)
	}
	return nil
}

// fileParser reads the YAML nodes in a file.
type fileParser struct{ name string }

func (p fileParser) invalid(at *yaml.Node, format string, args ...any) error {
	return problem.Invalidf("", "read %s:%d:%d: %w", p.name, at.Line, at.Column, fmt.Errorf(format, args...))
}

// fields calls the function for each field in a mapping.
func (p fileParser) fields(n *yaml.Node, known map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return p.invalid(n, "expected fields")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := known[key.Value]
		switch {
		case read == nil:
			return p.invalid(key, "unknown field %s", key.Value)
		case seen[key.Value]:
			return p.invalid(key, "%s is given twice", key.Value)
		}
		seen[key.Value] = true
		if err := read(value); err != nil {
			return err
		}
	}
	return nil
}

func (p fileParser) items(n *yaml.Node, do func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return p.invalid(n, "expected a list")
	}
	for _, item := range n.Content {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

func (p fileParser) text(into *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
			return p.invalid(n, "expected text")
		}
		*into = n.Value
		return nil
	}
}

func (p fileParser) texts(into *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		return p.items(n, func(item *yaml.Node) error {
			var text string
			err := p.text(&text)(item)
			*into = append(*into, text)
			return err
		})
	}
}

func (p fileParser) number(into *int, least int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		number, err := strconv.Atoi(n.Value)
		if err != nil || n.Tag != "!!int" || number < least || number > maxCount {
			return p.invalid(n, "invalid number %q: must be between %d and %d", n.Value, least, maxCount)
		}
		*into = number
		return nil
	}
}

// step reads one step. Each scenario has other fields.
func (p fileParser) step(n *yaml.Node) (Step, error) {
	s := Step{Count: 1, Limit: DefaultLimit}
	for i := 0; i < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == "scenario" {
			s.Scenario = n.Content[i+1].Value
		}
	}
	fields := map[string]func(*yaml.Node) error{"scenario": p.text(&s.Scenario)}
	required := ""
	switch s.Scenario {
	case "pending", "replace-all":
	case "drain":
		required, fields["nodes"] = "nodes", p.texts(&s.Nodes)
	case "add":
		required, fields["files"] = "files", p.texts(&s.Files)
		fields["count"], fields["limit"] = p.number(&s.Count, 1), p.number(&s.Limit, 0)
	case "nodes":
		required, fields["add"] = "add", func(n *yaml.Node) error { return p.nodesToAdd(n, &s.Add) }
	default:
		return s, p.invalid(n, "invalid scenario %q: must be pending, replace-all, drain, add or nodes", s.Scenario)
	}
	if err := p.fields(n, fields); err != nil {
		return s, err
	}
	if required != "" && !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Value == required }) {
		return s, p.invalid(n, "%s is required", required)
	}
	return s, nil
}

// nodesToAdd reads node numbers by template.
func (p fileParser) nodesToAdd(n *yaml.Node, into *[]NodesToAdd) error {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return p.invalid(n, "expected TEMPLATE: N")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		add := NodesToAdd{Template: n.Content[i].Value}
		switch {
		case add.Template == "":
			return p.invalid(n.Content[i], "expected TEMPLATE: N")
		case seen[add.Template]:
			return p.invalid(n.Content[i], "%s is given twice", add.Template)
		}
		seen[add.Template] = true
		if err := p.number(&add.Count, 1)(n.Content[i+1]); err != nil {
			return err
		}
		*into = append(*into, add)
	}
	return nil
}
