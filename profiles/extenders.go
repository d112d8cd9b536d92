package profiles

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/convert"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/profiles/validate"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Extenders returns the extenders of a configuration or a Policy, without their names.
func Extenders(source []byte) ([]schema.Extender, error) {
	if len(source) == 0 {
		return nil, nil
	}
	doc, err := schema.Read("configuration", source, false)
	if err != nil {
		return nil, fmt.Errorf("read the extenders of a configuration: %w", err)
	}
	var all []schema.Extender
	for _, e := range node.Items(doc.Root, "extenders") {
		all = append(all, schema.ReadExtender(e))
	}
	return all, nil
}

// extenders checks the extenders of the source and the request, and appends the latter to the
// former.
func (d *deployment) extenders() {
	for _, e := range node.Items(d.doc.Root, "extenders") {
		if key, value := node.Lookup(node.Get(e, "tlsConfig"), "keyData"); node.Text(value) != "" {
			d.Note(key, "keyData is a private key in a ConfigMap, visible to everyone who can read it; use keyFile instead")
		}
	}
	reportExtenders(d.Report, d.request.Release, d.doc.Root, d.request.Extenders)
	addExtenders(d.doc.Root, d.request.Extenders)
}

// reportExtenders reports the findings about a document's extenders, and about those to be added to
// it.
func reportExtenders(r *schema.Report, release versions.Release, root *yaml.Node, added []schema.Extender) {
	for _, f := range validate.Extenders(release, root, added) {
		if f.Refuses() {
			r.Refuse(f.Node, f.Try, "%s", f.Message)
			continue
		}
		r.Warn(f.Node, f.Message+"; "+f.Try)
	}
}

// checkConverted checks a converted document as the scheduler will.
func checkConverted(r *schema.Report, root *yaml.Node, o convert.Options) {
	if len(r.Problems) > 0 {
		return
	}
	doc := &schema.Document{Root: root, API: o.To}
	rejected, accepted := validate.Document(doc, validate.Options{Release: o.Release, Rules: o.Rules,
		Plugins: slices.Concat(o.Plugins, foreignPlugins(root)), Converted: true}).Split()
	r.Problems = rejected
	for _, p := range accepted {
		if p.Line > 0 { // the conversion's own entries only cost a line
			r.Notes = append(r.Notes, p.Warning())
		}
	}
}

func addExtenders(root *yaml.Node, extenders []schema.Extender) {
	for _, e := range extenders {
		all := node.List(root, "extenders")
		all.Content = append(all.Content, e.Node())
	}
}

// CheckExtenders checks extenders for a release as [Render] does. The error is an [*Error] with
// every reason not to deploy them; the notes are warnings.
func CheckExtenders(release versions.Release, extenders []schema.Extender) ([]schema.Note, error) {
	return warnings(validate.Extenders(release, nil, extenders))
}

func warnings(found []validate.ExtenderFinding) ([]schema.Note, error) {
	var wrong schema.Problems
	var notes []schema.Note
	for _, f := range found {
		if f.Refuses() {
			wrong.Add(node.Position{}, f.Try, "%s", f.Message)
		} else {
			notes = append(notes, schema.Note{Message: f.Message + "; " + f.Try, Warning: true})
		}
	}
	return notes, wrong.Err("")
}

// WithoutFiles returns a configuration or Policy without the files that its extenders refer to. A
// scheduler that only checks the rest would require them to exist.
func WithoutFiles(configuration []byte) ([]byte, error) {
	root, problem := schema.Decode(configuration)
	if problem != nil {
		return nil, schema.Problems{*problem}.Err("configuration")
	}
	if len(schema.ExtenderFiles(root)) == 0 {
		return configuration, nil
	}
	schema.DropExtenderFiles(root)
	text, err := schema.Encode(root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return text, nil
}
