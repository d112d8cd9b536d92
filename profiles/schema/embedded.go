package schema

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// policyKey is the key of a Policy in the ConfigMap that --policy-configmap names, 1.20–1.22
// (pkg/scheduler/apis/config/types.go).
const policyKey = "policy.cfg"

// configurationText matches a configuration among a ConfigMap's values, even a malformed one, so
// that its errors are reported.
var configurationText = regexp.MustCompile(
	`(?m)^\s*[{,]?\s*["']?kind["']?[ \t]*:[ \t]*["']?(KubeSchedulerConfiguration|Policy)\b|[{,]\s*"kind"\s*:\s*"(KubeSchedulerConfiguration|Policy)"`)

// MentionsConfiguration reports whether a text has a configuration, even a malformed one.
func MentionsConfiguration(text []byte) bool { return configurationText.Match(text) }

// embedded finds the configurations inside of an object that is not one: as text in a ConfigMap, a
// Secret, the files of a KubeadmControlPlane or the values of a HelmRelease, or as a part of the
// object. Positions remain positions in the file.
type embedded struct {
	d         *Document
	object    *yaml.Node
	repairing bool
	all       []found
	problem   *Problem
}

// within returns the configurations inside of an object.
func (d *Document) within(object *yaml.Node, repairing bool) ([]found, *Problem) {
	e := &embedded{d: d, object: object, repairing: repairing}
	e.walk(object, "")
	return e.all, e.problem
}

func (e *embedded) kind() string { return node.Text(e.object, "kind") }

// walk visits a node of the object at a path such as data.policy.cfg. Metadata may contain a copy
// of the object (kubectl.kubernetes.io/last-applied-configuration).
func (e *embedded) walk(n *yaml.Node, path string) {
	switch {
	case e.problem != nil:
	case n.Kind == yaml.ScalarNode:
		e.text(n, path)
	case isConfiguration(n) && e.kind() == "ConfigMap":
		e.problem = &Problem{Line: n.Line, Column: n.Column, Try: "add `|` after the key", Message: fmt.Sprintf(
			"data of a ConfigMap: expected text at key %s, got %s", strings.TrimPrefix(path, "data."), node.Describe(n))}
	case isConfiguration(n):
		e.add(found{root: n, key: path, notes: []Note{{Line: n.Line, Column: n.Column, Message: e.readFrom(path)}}})
	case isChartValues(n):
		e.add(chartConfiguration(n))
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			e.walk(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case node.IsMapping(n):
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i].Value; key != "metadata" && key != "status" {
				e.walk(n.Content[i+1], Join(path, key))
			}
		}
	}
}

func (e *embedded) add(f found) {
	f.in = e.object
	e.all = append(e.all, f)
}

// readFrom says where a configuration was found.
func (e *embedded) readFrom(path string) string {
	if key, ok := strings.CutPrefix(path, "data."); ok && e.kind() == "ConfigMap" {
		return "read from key " + key + " of a ConfigMap"
	}
	if e.kind() == "" {
		return "read from " + path
	}
	return fmt.Sprintf("read from %s of %s", path, nameOf(e.object))
}

// nameOf names an object as kubectl does: kind and name.
func nameOf(object *yaml.Node) string {
	kind := node.Text(object, "kind")
	if kind == "" {
		kind = "an object without a kind"
	}
	return strings.TrimSpace(kind + " " + node.Text(object, "metadata", "name"))
}

// isConfiguration reports whether a mapping is a configuration or a legacy Policy. Other APIs have
// a kind Policy too, such as audit.k8s.io.
func isConfiguration(n *yaml.Node) bool {
	switch node.Text(n, "kind") {
	case ConfigKind:
		return true
	case PolicyKind:
		version := node.Text(n, "apiVersion")
		return version == "" || isPolicyVersion(version)
	}
	return false
}

// text reads a value that contains a configuration.
func (e *embedded) text(value *yaml.Node, path string) {
	if e.kind() == "Secret" && strings.HasPrefix(path, "data.") {
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value.Value), ""))
		if err != nil {
			return // it is not the text of an API object
		}
		copied := *value
		copied.Value, copied.Style = string(decoded), 0
		value = &copied
	}
	if path != "data."+policyKey && !configurationText.MatchString(value.Value) {
		return
	}
	one, problem := e.d.unwrap(value, e.repairing)
	if problem != nil {
		e.problem = problem
		return
	}
	if path != "data."+policyKey && !isConfiguration(one.root) {
		return
	}
	one.key = strings.TrimPrefix(path, "data.")
	one.notes = append(one.notes, Note{Line: value.Line, Column: value.Column, Message: e.readFrom(path)})
	e.add(one)
}

// unwrap reads the configuration in a text.
func (d *Document) unwrap(value *yaml.Node, repairing bool) (found, *Problem) {
	inner := &Document{Name: d.Name, Text: []byte(value.Value)}
	place := placeIn(string(d.Text), value)
	objects, problem := inner.load(inner.Text, repairing)
	if problem == nil && len(objects) > 1 {
		problem = secondProblem([]found{{root: objects[0]}, {root: objects[1]}})
	}
	if problem != nil {
		problem.Line, problem.Column = place(problem.Line, problem.Column)
		return found{}, problem
	}
	for i := range inner.Notes {
		inner.Notes[i].Line, inner.Notes[i].Column = place(inner.Notes[i].Line, inner.Notes[i].Column)
	}
	move(objects[0], place)
	return found{root: objects[0], text: inner.Text, notes: inner.Notes}, nil
}

// placeIn returns a function that maps a position in a scalar's text to the file. Positions in a
// quoted scalar map to its start.
func placeIn(file string, n *yaml.Node) func(line, column int) (int, int) {
	if n.Style&yaml.LiteralStyle == 0 {
		return func(int, int) (int, int) { return n.Line, n.Column }
	}
	lines, shift := strings.Split(file, "\n"), 0
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	for i, line := range strings.Split(n.Value, "\n") {
		if strings.TrimSpace(line) != "" && n.Line+i < len(lines) {
			shift = indent(lines[n.Line+i]) - indent(line)
			break
		}
	}
	return func(line, column int) (int, int) { return n.Line + line, shift + column }
}

// move maps the positions of all nodes in a tree.
func move(n *yaml.Node, place func(line, column int) (int, int)) {
	n.Line, n.Column = place(n.Line, n.Column)
	for _, child := range n.Content {
		move(child, place)
	}
}
