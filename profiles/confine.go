package profiles

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// confine reports the files that a rendered configuration names, other than those of extenders.
func confine(r *schema.Report, root *yaml.Node, extenders []schema.Extender) {
	known := map[string]bool{"": true}
	for _, e := range extenders {
		if e.TLS != nil {
			known[e.TLS.CertFile], known[e.TLS.KeyFile] = true, true
		}
	}
	confineNode(r, root, "", known)
}

// confineNode reports each field below a node whose name ends in file: caFile, bearerTokenFile.
func confineNode(r *schema.Report, n *yaml.Node, path string, known map[string]bool) {
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			confineNode(r, child, fmt.Sprintf("%s[%d]", path, i), known)
		case n.Kind != yaml.MappingNode:
			confineNode(r, child, path, known)
		case i%2 == 1:
			name := n.Content[i-1].Value
			lower := strings.ToLower(name)
			if strings.HasSuffix(lower, "file") && !strings.HasSuffix(lower, "profile") && !known[child.Value] {
				r.Problems = append(r.Problems, schema.Problem{
					Line: child.Line, Column: child.Column,
					Message: fmt.Sprintf("%s names the file %q, and files of this machine are not read for a configuration that comes "+
						"out of a cluster", schema.Join(path, name), child.Value),
					Try: "name the file of the scheduler with -f pmk-sched.yaml",
				})
			}
			confineNode(r, child, schema.Join(path, name), known)
		}
	}
}
