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

// configurationText matches a configuration among a ConfigMap's values, even a malformed one, so
// that its errors are reported.
var configurationText = regexp.MustCompile(
	`(?m)^\s*[{,]?\s*["']?kind["']?[ \t]*:[ \t]*["']?(KubeSchedulerConfiguration|Policy)\b|[{,]\s*"kind"\s*:\s*"(KubeSchedulerConfiguration|Policy)"`)

// inConfigMap returns the configurations in a ConfigMap. Positions remain positions in the file.
func (d *Document) inConfigMap(configMap *yaml.Node, repairing bool) ([]found, *Problem) {
	var all []found
	data := node.Get(configMap, "data")
	for i := 0; node.IsMapping(data) && i+1 < len(data.Content); i += 2 {
		key, held := data.Content[i].Value, data.Content[i+1]
		if key != policyKey && !configurationText.MatchString(node.Text(held)) {
			continue
		}
		if held.Kind != yaml.ScalarNode {
			return nil, &Problem{Line: held.Line, Column: held.Column,
				Message: fmt.Sprintf("data of a ConfigMap: expected text at key %s, got %s", key, node.Describe(held)),
				Try:     "add `|` after the key"}
		}
		one, problem := d.unwrap(key, held, repairing)
		if problem != nil {
			return nil, problem
		}
		one.in = configMap
		all = append(all, one)
	}
	return all, nil
}

// unwrap reads the configuration in a field of a ConfigMap.
func (d *Document) unwrap(key string, value *yaml.Node, repairing bool) (found, *Problem) {
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
	return found{root: objects[0], text: inner.Text, key: key, notes: append(inner.Notes,
		Note{Line: value.Line, Column: value.Column, Message: "read from key " + key + " of a ConfigMap"})}, nil
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
