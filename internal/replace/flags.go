package replace

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// convertFlags sets the fields in a configuration that replace the flags in args for a scheduler
// without --config, unless the user's own source sets them. The notes list the flags, and the
// warnings flags whose field is inside the profiles.
func convertFlags(configuration, source []byte, args []string, rules versions.Rules) (
	text []byte, notes, warnings []string, err error) {
	root, wrong := schema.Decode(configuration)
	if wrong != nil {
		return nil, nil, nil, schema.Problems{*wrong}.Err("the rendered configuration")
	}
	own, _ := schema.Decode(source) // it was parsed before; a preset has none
	for _, c := range rules.IgnoredFlags() {
		value, given := staticpod.Flag(args, c.Name)
		path := strings.Split(c.Field, ".")
		switch {
		case !given || node.Get(own, path...) != nil:
		case c.InProfile:
			warnings = append(warnings,
				fmt.Sprintf("flag --%s=%s has no effect any more: it is ignored with --config; set %s there", c.Name, value, c.Field))
		default:
			parent, last := root, len(path)-1
			for _, name := range path[:last] {
				parent = node.Child(parent, name)
			}
			node.Put(parent, path[last], &yaml.Node{Kind: yaml.ScalarNode, Value: value})
			notes = append(notes, fmt.Sprintf("flag --%s=%s becomes %s: it is ignored with --config", c.Name, value, c.Field))
		}
	}
	if len(notes) == 0 {
		return configuration, nil, warnings, nil
	}
	text, err = schema.Encode(root)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("write the configuration: %w", err)
	}
	return text, notes, warnings, nil
}
