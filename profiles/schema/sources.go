package schema

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// found is a configuration in a source, which may be a manifest with several objects.
type found struct {
	root  *yaml.Node
	text  []byte
	notes []Note
	// in is the object that contains the configuration as text, and key its field, or nil and "".
	in  *yaml.Node
	key string
}

func (f found) kind() string { return node.Text(f.root, "kind") }

// isNamedBy reports whether a v1alpha1 configuration names the Policy's ConfigMap, or the Policy is
// in none.
func (f found) isNamedBy(source *yaml.Node) bool {
	wanted, name := node.Text(source, "configMap", "name"), node.Text(f.in, "metadata", "name")
	return f.in == nil || wanted == "" || name == "" || wanted == name
}

// templateText matches a Helm or Jinja template expression, or an envsubst variable.
var templateText = regexp.MustCompile(`\{\{.*?(\}\}|$)|\{%.*?(%\}|$)|\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

const renderTemplate = "render it first, for example with `helm template`, and pass the result"

// unrendered returns the problem that the source, which is not valid YAML, is a template, or nil.
func unrendered(source []byte) *Problem {
	for i, line := range strings.Split(string(source), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		comment := strings.Index(line, " #")
		if at := templateText.FindStringIndex(line); at != nil && (comment < 0 || at[0] < comment) {
			return &Problem{Line: i + 1, Column: at[0] + 1,
				Message: fmt.Sprintf("the file is a template (Helm, Jinja, envsubst): it contains %s", line[at[0]:at[1]]),
				Try:     renderTemplate}
		}
	}
	return nil
}

// hasMappingKey reports whether a key is a mapping, as a template's braces are in YAML.
func hasMappingKey(n *yaml.Node) bool {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.MappingNode || hasMappingKey(c) {
			return true
		}
	}
	return false
}

// warnTemplates warns about texts of a template, which the scheduler uses as they are.
func (d *Document) warnTemplates(n *yaml.Node) {
	if found := templateText.FindString(n.Value); n.Kind == yaml.ScalarNode && found != "" {
		d.Notes = append(d.Notes, Note{Line: n.Line, Column: n.Column, Warning: true,
			Message: found + " is of a template (Helm, Jinja, envsubst), and is used as it is; " + renderTemplate})
	}
	for _, c := range n.Content {
		d.warnTemplates(c)
	}
}

// choose selects the document's configuration among its source's objects.
func (d *Document) choose(objects []*yaml.Node, repairing bool) *Problem {
	var all []found
	var others []*yaml.Node
	for _, o := range objects {
		if isConfiguration(o) || len(objects) == 1 && node.Text(o, "kind") == PolicyKind {
			all = append(all, found{root: o})
			continue
		}
		inner, problem := d.within(o, repairing)
		if problem != nil {
			return problem
		}
		if len(inner) == 0 {
			others = append(others, o)
		}
		all = append(all, inner...)
	}
	if len(all) == 0 {
		d.Root = objects[0]
		if len(objects) > 1 {
			return withoutConfiguration(objects)
		}
		return nil
	}
	if problem := d.take(all, repairing); problem != nil {
		return problem
	}
	d.Notes = append(d.Notes, leftOut(others)...)
	return nil
}

// withoutConfiguration returns the problem that none of several objects has a configuration.
func withoutConfiguration(objects []*yaml.Node) *Problem {
	var names []string
	for _, o := range objects {
		names = append(names, nameOf(o))
	}
	return &Problem{Line: objects[0].Line, Column: objects[0].Column,
		Message: "no object of the file has a " + ConfigKind + ": " + strings.Join(names, ", "),
		Try:     "pass the scheduler's configuration; pmk-sched creates the other objects"}
}

// replacedBy says what pmk-sched has in place of an object of a hand-written manifest.
func replacedBy(kind string) string {
	switch kind {
	case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return "pmk-sched grants the scheduler its permissions"
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod":
		return "pmk-sched creates the Deployment; `pmk-sched migrate -f FILE` takes its image, flags and nodes over"
	case "ConfigMap", "Secret":
		return "the kubeconfig is given with --credentials"
	}
	return "pmk-sched does not create it"
}

// LeftOut begins the notes about objects beside the configuration.
const LeftOut = "only the scheduler's configuration is read, not "

// leftOut returns a note for the objects that are replaced in the same way.
func leftOut(objects []*yaml.Node) []Note {
	var notes []Note
	for len(objects) > 0 {
		why, names, rest := replacedBy(node.Text(objects[0], "kind")), []string(nil), []*yaml.Node(nil)
		for _, o := range objects {
			if replacedBy(node.Text(o, "kind")) == why {
				names = append(names, nameOf(o))
			} else {
				rest = append(rest, o)
			}
		}
		notes, objects = append(notes, Note{Message: LeftOut + strings.Join(names, ", ") + ": " + why}), rest
	}
	return notes
}

// take makes the only configuration, or a Policy and the configuration that names it, the document.
// Without repairing it is the configuration.
func (d *Document) take(all []found, repairing bool) *Problem {
	chosen := all[0]
	if len(all) == 2 {
		outer, policy := all[0], all[1]
		if outer.kind() == PolicyKind {
			outer, policy = policy, outer
		}
		if source := policySource(outer.root); source != nil && policy.kind() == PolicyKind {
			all, chosen = nil, outer
			if repairing && policy.isNamedBy(source) {
				d.Outer, chosen = outer.root, policy
				d.Notes = append(d.Notes, outer.notes...)
			}
		}
	}
	if len(all) > 1 {
		return secondProblem(all)
	}
	d.Root, d.Notes = chosen.root, append(d.Notes, chosen.notes...)
	if chosen.in != nil {
		d.Text = chosen.text
	}
	return nil
}

// secondProblem returns the problem that a source has several configurations.
func secondProblem(all []found) *Problem {
	if first := all[0]; first.in != nil && first.in == all[len(all)-1].in {
		var keys []string
		for _, f := range all {
			keys = append(keys, f.key)
		}
		_, kind := node.Lookup(first.in, "kind")
		return &Problem{Line: kind.Line, Column: kind.Column,
			Message: "the ConfigMap has several keys with a configuration: " + strings.Join(keys, ", "),
			Try:     "put the text of one of them in a separate file"}
	}
	second := all[1].root
	return &Problem{Line: second.Line, Column: second.Column,
		Message: "unexpected second document: a scheduler reads one configuration",
		Try:     "keep one document in the file, or deploy each with its own --name"}
}
