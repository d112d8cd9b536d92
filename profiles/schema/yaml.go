package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

const (
	// maxSource is the largest size, in bytes, that fits in a ConfigMap.
	maxSource = 1 << 20
	// maxNodes limits the expansion of aliases.
	maxNodes = 100_000
)

// Decode returns the root mapping of the only document in the source.
func Decode(source []byte) (*yaml.Node, *Problem) {
	all, problem := decodeAll(source)
	if problem != nil {
		return nil, problem
	}
	if len(all) > 1 {
		return nil, secondProblem([]found{{root: all[0]}, {root: all[1]}})
	}
	return all[0], nil
}

// decodeAll returns the root mappings of all documents in the source, at least one, and the
// elements of object lists.
func decodeAll(source []byte) ([]*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var all []*yaml.Node
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxProblem(source, err)
		}
		if len(doc.Content) == 0 || node.IsNull(doc.Content[0]) {
			continue
		}
		root := doc.Content[0]
		if !node.IsMapping(root) {
			return nil, &Problem{Line: root.Line, Column: root.Column,
				Message: fmt.Sprintf("expected a mapping, got %s", node.Describe(root)), Try: "start with apiVersion: and kind:"}
		}
		if items := node.Items(root, "items"); len(items) > 0 && strings.HasSuffix(node.Text(root, "kind"), "List") {
			all = append(all, items...)
			continue
		}
		all = append(all, root)
	}
	if len(all) == 0 {
		return nil, &Problem{Line: 1, Column: 1, Message: "the file is empty",
			Try: "start with the output of `pmk-sched profile show default`, or omit --config"}
	}
	return all, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxProblem adds a column to an error of the YAML parser, and detects tabs.
func syntaxProblem(source []byte, err error) *Problem {
	p := &Problem{Line: 1, Column: 1, Message: "invalid YAML: " + err.Error(),
		Try: "check the indentation: two spaces for each level"}
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		p.Message = "invalid YAML: " + found[2]
		if line, err := strconv.Atoi(found[1]); err == nil {
			p.Line = line
		}
	}
	lines := strings.Split(string(source), "\n")
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 && strings.TrimSpace(line) != "" {
			return &Problem{Line: i + 1, Column: tab + 1, Message: "the line is indented with a tab; YAML only allows spaces",
				Try: "replace each tab with two spaces"}
		}
	}
	if p.Line <= len(lines) {
		line := lines[p.Line-1]
		p.Column = 1 + len(line) - len(strings.TrimLeft(line, " "))
	}
	return p
}

// expandAliases replaces each alias with a copy of its anchor, so that edits do not affect other
// places.
func expandAliases(root *yaml.Node) *Problem {
	count := 0
	var walk func(n *yaml.Node, depth int) *Problem
	walk = func(n *yaml.Node, depth int) *Problem {
		if count++; count > maxNodes || depth > 100 {
			return &Problem{Line: n.Line, Column: n.Column, Message: "too many nested or repeated nodes"}
		}
		n.Anchor = ""
		if node.IsNull(n) {
			n.Value = "null" // an empty one would be written as an empty string
		}
		for i, c := range n.Content {
			if c.Kind == yaml.AliasNode {
				copied := *c.Alias
				copied.Content = append([]*yaml.Node(nil), c.Alias.Content...)
				c, n.Content[i] = &copied, &copied
			} else if c.Tag == "!!merge" {
				return &Problem{Line: c.Line, Column: c.Column, Message: "merge keys (<<) are not supported",
					Try: "write out the merged fields"}
			} else if c.Kind != yaml.ScalarNode {
				own := *c
				own.Content = append([]*yaml.Node(nil), c.Content...)
				c, n.Content[i] = &own, &own
			} else {
				own := *c
				c, n.Content[i] = &own, &own
			}
			if p := walk(c, depth+1); p != nil {
				return p
			}
		}
		return nil
	}
	return walk(root, 0)
}

// Encode writes a document as YAML. Its root is in block style: a scheduler takes a text that
// begins with a brace for JSON (apimachinery, pkg/util/yaml/decoder.go, hasJSONPrefix), which has
// no unquoted keys.
func Encode(root *yaml.Node) ([]byte, error) {
	block := *root
	block.Style &^= yaml.FlowStyle
	root = &block
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
