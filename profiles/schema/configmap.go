package schema

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// policyKey is the key of a Policy in the ConfigMap that --policy-configmap names, 1.20–1.22
// (pkg/scheduler/apis/config/types.go).
const policyKey = "policy.cfg"

// configurationText matches a configuration among the values of a ConfigMap, even a malformed one,
// so that its errors are reported.
var configurationText = regexp.MustCompile(
	`(?m)^\s*[{,]?\s*["']?kind["']?[ \t]*:[ \t]*["']?(KubeSchedulerConfiguration|Policy)\b|[{,]\s*"kind"\s*:\s*"(KubeSchedulerConfiguration|Policy)"`)

// unwrap replaces a ConfigMap with the configuration in it. Positions remain positions in the file.
func (d *Document) unwrap(repairing bool) *Problem {
	_, kind := node.Lookup(d.Root, "kind")
	data := node.Get(d.Root, "data")
	var found []string
	var value *yaml.Node
	for i := 0; node.IsMapping(data) && i+1 < len(data.Content); i += 2 {
		key, held := data.Content[i], data.Content[i+1]
		if key.Value == policyKey || configurationText.MatchString(node.Text(held)) {
			found, value = append(found, key.Value), held
		}
	}
	switch {
	case len(found) == 0:
		return &Problem{Line: kind.Line, Column: kind.Column, Message: "the ConfigMap has no key with a configuration",
			Try: "put the text under `data:` in a separate file"}
	case len(found) > 1:
		return &Problem{Line: kind.Line, Column: kind.Column,
			Message: "the ConfigMap has several keys with a configuration: " + strings.Join(found,
				", "), Try: "put the text of one of them in a separate file"}
	case value.Kind != yaml.ScalarNode:
		return &Problem{Line: value.Line, Column: value.Column,
			Message: fmt.Sprintf("data of a ConfigMap: expected text at key %s, got %s", found[0],
				node.Describe(value)), Try: "add `|` after the key"}
	}
	inner := &Document{Name: d.Name, Text: []byte(value.Value)}
	place := placeIn(string(d.Text), value)
	if problem := inner.load(inner.Text, repairing); problem != nil {
		problem.Line, problem.Column = place(problem.Line, problem.Column)
		return problem
	}
	for i := range inner.Notes {
		inner.Notes[i].Line, inner.Notes[i].Column = place(inner.Notes[i].Line, inner.Notes[i].Column)
	}
	move(inner.Root, place)
	d.Root, d.Text, d.Notes = inner.Root, inner.Text, append(d.Notes, inner.Notes...)
	d.Notes = append(d.Notes,
		Note{Line: value.Line, Column: value.Column, Message: "read from key " + found[0] + " of a ConfigMap"})
	return nil
}

// placeIn returns a function that maps a position in the text of a scalar to the file. Positions in
// a quoted scalar map to its start.
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

// move maps the positions of all nodes of a tree.
func move(n *yaml.Node, place func(line, column int) (int, int)) {
	n.Line, n.Column = place(n.Line, n.Column)
	for _, child := range n.Content {
		move(child, place)
	}
}
