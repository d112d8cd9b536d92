package handmade

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// Lines of a Deployment whose indentation was lost in print.
var (
	fieldLine = regexp.MustCompile(`^\s*(?:- )?([A-Za-z]+):\s*(.*?)\s*$`)
	flagLine  = regexp.MustCompile(`^\s*-\s+["']?(--?[a-z][^"']*|/?[^\s"':]*kube-scheduler)["']?\s*$`)
	labelLine = regexp.MustCompile(`^\s*([a-z0-9.-]+/[A-Za-z0-9._-]+):\s*["']?([^"'\s]*)["']?\s*$`)
)

// salvage returns the Deployment of a scheduler in a damaged document, with what a single line
// says: it does not depend on the indentation. It returns nil for any other document.
func salvage(part schema.Part) *yaml.Node {
	if part.Problem == nil {
		return nil
	}
	l := &lines{fields: map[string]string{}, selector: node.Mapping()}
	for line := range strings.SplitSeq(string(part.Text), "\n") {
		l.read(line)
	}
	if l.fields["kind"] != "Deployment" || l.fields["name"] == "" || len(l.words) == 0 {
		return nil
	}
	made := l.deployment()
	made.Line, made.Column = part.First, 1
	return made
}

// lines is what single lines of a Deployment say.
type lines struct {
	fields   map[string]string // the first value of each field
	words    []*yaml.Node      // the command line
	selector *yaml.Node
	mounted  []*yaml.Node // volumes
	last     string       // the field of the line before
}

func (l *lines) read(line string) {
	label, flag := labelLine.FindStringSubmatch(line), flagLine.FindStringSubmatch(line)
	field := fieldLine.FindStringSubmatch(line)
	switch {
	case label != nil && l.last == "nodeSelector":
		node.Put(l.selector, label[1], node.String(label[2]))
	case flag != nil:
		l.words = append(l.words, node.String(flag[1]))
	case field != nil:
		name, value := field[1], strings.Trim(field[2], `"'`)
		if name == "name" && l.last == "configMap" {
			l.mounted = append(l.mounted, node.Mapping("name", node.String(value), "configMap",
				node.Mapping("name", node.String(value))))
		}
		if _, known := l.fields[name]; !known {
			l.fields[name] = value
		}
		l.last = name
	}
}

// deployment returns a Deployment with one container.
func (l *lines) deployment() *yaml.Node {
	text := func(field string) *yaml.Node { return node.String(l.fields[field]) }
	container := node.Mapping("name", node.String("kube-scheduler"), "image", text("image"), "command",
		node.Sequence(l.words))
	pod := node.Mapping("serviceAccountName", text("serviceAccountName"), "containers",
		node.Sequence([]*yaml.Node{container}), "nodeSelector", l.selector, "volumes", node.Sequence(l.mounted))
	spec := node.Mapping("template", node.Mapping("spec", pod))
	if replicas := l.fields["replicas"]; replicas != "" {
		node.Put(spec, "replicas", &yaml.Node{Kind: yaml.ScalarNode, Value: replicas})
	}
	return node.Mapping("apiVersion", node.String("apps/v1"), "kind", node.String("Deployment"), "metadata",
		node.Mapping("name", text("name"), "namespace", text("namespace")), "spec", spec)
}
