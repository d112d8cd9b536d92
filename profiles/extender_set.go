package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/versions"
)

// extenders adds those of the request to those of the source, and tells what is
// wrong with either.
func (d *deployment) extenders() {
	for _, e := range items(get(d.doc.root, "extenders")) {
		if key, value := lookup(get(e, "tlsConfig"), "keyData"); text(value) != "" {
			d.note(key, "keyData is a private key, and the configuration is kept in a ConfigMap: whoever may read ConfigMaps there can read it; use keyFile instead")
		}
	}
	for _, f := range checkExtenders(d.request.Release, d.doc.root, d.request.Extenders) {
		if f.refuses() {
			d.refuse(f.node, f.try, "%s", f.message)
			continue
		}
		d.warn(f.node, f.message+"; "+f.try)
	}
	addExtenders(d.doc.root, d.request.Extenders)
}

func addExtenders(root *yaml.Node, extenders []Extender) {
	for _, e := range extenders {
		all := list(root, "extenders")
		all.Content = append(all.Content, e.node())
	}
}

// CheckExtenders judges extenders as [Render] does for a release. The error is an
// [*Error] with every reason not to deploy them; the notes are warnings.
func CheckExtenders(release versions.Release, extenders []Extender) ([]Note, error) {
	return warnings(checkExtenders(release, nil, extenders))
}

func warnings(found []extenderFinding) ([]Note, error) {
	var wrong problems
	var notes []Note
	for _, f := range found {
		if f.refuses() {
			wrong.add(position{}, f.try, "%s", f.message)
		} else {
			notes = append(notes, Note{Message: f.message + "; " + f.try, Warning: true})
		}
	}
	return notes, wrong.err("")
}

// SetExtenders takes the extenders at the addresses drop out of a configuration that was rendered for the release, and adds
// others after those that are left. Everything else stays as it is, so that what was added and is dropped again leaves the bytes
// from before. What is wrong with the extenders is an [*Error], what may not be meant a note.
func SetExtenders(configuration []byte, release versions.Release, drop []string, add []Extender) ([]byte, []Note, error) {
	root, problem := decode(configuration)
	if problem != nil {
		return nil, nil, problems{*problem}.err("configuration")
	}
	if all := get(root, "extenders"); all != nil {
		all.Content = slices.DeleteFunc(all.Content, func(e *yaml.Node) bool { return slices.Contains(drop, text(get(e, "urlPrefix"))) })
		if len(all.Content) == 0 {
			remove(root, "extenders")
		}
	}
	notes, err := warnings(checkExtenders(release, mapping("extenders", sequence(items(get(root, "extenders")))), add))
	if err != nil {
		return nil, nil, err
	}
	addExtenders(root, add)
	out, err := encode(root)
	if err != nil {
		return nil, nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return out, notes, nil
}

// WithoutFiles returns a configuration or Policy without the files that its
// extenders name: a scheduler that is only to judge the rest wants them to exist.
func WithoutFiles(configuration []byte) ([]byte, error) {
	root, problem := decode(configuration)
	if problem != nil {
		return nil, problems{*problem}.err("configuration")
	}
	if len(extenderFiles(root)) == 0 {
		return configuration, nil
	}
	dropExtenderFiles(root)
	text, err := encode(root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return text, nil
}
