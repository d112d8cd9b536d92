package replace

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

// convertFlags sets the fields in a configuration that replace the flags in args for a scheduler
// without --config, unless the user's own source sets them. The notes list the flags, and the
// warnings flags whose field is inside the profiles.
func convertFlags(configuration, source []byte, args []string, rules versions.Rules) (
	text []byte, notes, warnings []string, err error) {
	var doc, own yaml.Node
	if err := yaml.Unmarshal(configuration, &doc); err != nil {
		return nil, nil, nil, fmt.Errorf("read the rendered configuration: %w", err)
	}
	_ = yaml.Unmarshal(source, &own) // it was parsed before; a preset has none
	for _, c := range rules.IgnoredFlags() {
		value, given := staticpod.Flag(args, c.Name)
		path := strings.Split(c.Field, ".")
		switch {
		case !given || has(&own, path):
		case c.InProfile:
			warnings = append(warnings,
				fmt.Sprintf("flag --%s=%s has no effect any more: it is ignored with --config; set %s there", c.Name, value, c.Field))
		default:
			put(&doc, path, value)
			notes = append(notes, fmt.Sprintf("flag --%s=%s becomes %s: it is ignored with --config", c.Name, value, c.Field))
		}
	}
	if len(notes) == 0 {
		return configuration, nil, warnings, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, nil, nil, fmt.Errorf("write the configuration: %w", err)
	}
	return out.Bytes(), notes, warnings, nil
}

// has reports whether a document has a field.
func has(n *yaml.Node, path []string) bool {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for _, name := range path {
		if n = entry(n, name); n == nil {
			return false
		}
	}
	return true
}

// put sets a field in a document to a flag's value.
func put(n *yaml.Node, path []string, value string) {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	for i, name := range path {
		next := entry(n, name)
		if next == nil {
			next = &yaml.Node{Kind: yaml.MappingNode}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
		}
		if i == len(path)-1 {
			*next = yaml.Node{Kind: yaml.ScalarNode, Value: value}
		}
		n = next
	}
}

func entry(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
