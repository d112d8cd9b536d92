// Package schema parses scheduler configuration into documents that keep positions and comments. It
// contains the fields and plugin arguments of each config API as data, and the problems and notes
// that are reported about a document.
package schema

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// Group and kind of a scheduler configuration.
const (
	ConfigGroup = "kubescheduler.config.k8s.io"
	ConfigKind  = "KubeSchedulerConfiguration"
)

// Document is a configuration as YAML nodes, with notes on repairs.
type Document struct {
	Name string
	// Text is the source, without a ConfigMap around it.
	Text []byte
	API  API
	Root *yaml.Node
	// Preset is set for a preset: it means the release's defaults.
	Preset bool
	// Policy is set if the source is a legacy Policy.
	Policy bool
	// Outer is a configuration of v1alpha1 that names the Policy, as v1beta1 with one profile, or nil.
	Outer *yaml.Node
	// Flow is set if the source is JSON.
	Flow  bool
	Notes []Note
}

// Parse parses a configuration strictly: one document, a known kind and config API, no unknown or
// duplicate fields, values of the right type. Layout errors with only one possible meaning are
// repaired, with a note.
func Parse(name string, source []byte) (*Document, error) {
	doc, err := Read(name, source, true)
	if err != nil {
		return nil, err
	}
	var found Problems
	doc.Check(&found, doc.API)
	rejected, accepted := found.Split()
	if err := rejected.Err(name); err != nil {
		return nil, err
	}
	for _, p := range accepted {
		doc.Notes = append(doc.Notes, p.Warning())
	}
	return doc, nil
}

// Check reports the parts of the document that the config API's strict decoder rejects.
func (d *Document) Check(p *Problems, a API) {
	checkObject(p, d.Root, d.object(), a, "")
	if d.Outer != nil {
		checkObject(p, d.Outer, Configuration(), a, "")
	}
}

// object returns the fields of the document's kind.
func (d *Document) object() Object {
	if d.Policy {
		return policyObject()
	}
	return Configuration()
}

// fillItems replaces null in lists of objects by an empty object, as a decoder does.
func (d *Document) fillItems(n *yaml.Node, o Object, where string) {
	for _, f := range o.Fields {
		value := node.Get(n, f.Name)
		if f.Kind == kindObject {
			d.fillItems(value, f.Object(), Join(where, f.Name))
		}
		if f.Kind != KindObjects {
			continue
		}
		for i, item := range node.Items(value) {
			place := fmt.Sprintf("%s[%d]", Join(where, f.Name), i)
			if node.IsNull(item) {
				d.Notes = append(d.Notes, Note{Line: item.Line, Column: item.Column, Warning: true,
					Message: place + " is empty, and read as {}; remove the line, or complete it"})
				*item = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle, Line: item.Line, Column: item.Column,
					LineComment: item.LineComment, HeadComment: item.HeadComment, FootComment: item.FootComment}
			}
			d.fillItems(item, f.Object(), place)
		}
	}
}

// Read finds the document in a source and identifies it, without checking its fields. With
// repairing, layout errors with only one possible meaning are repaired.
func Read(name string, source []byte, repairing bool) (*Document, error) {
	fail := func(p ...Problem) error { return Problems(p).Err(name) }
	if len(source) > maxSource {
		return nil, fail(Problem{Message: fmt.Sprintf("%d bytes exceed the size of a ConfigMap (1 MiB)", len(source))})
	}
	doc := &Document{Name: name, Text: source}
	objects, problem := doc.load(source, repairing)
	if problem == nil {
		problem = doc.choose(objects, repairing)
	}
	if problem == nil && hasMappingKey(doc.Root) || problem != nil && strings.HasPrefix(problem.Message, "invalid YAML") {
		if template := unrendered(source); template != nil {
			problem = template
		}
	}
	if problem != nil {
		return nil, fail(*problem)
	}
	doc.warnTemplates(doc.Root)
	if problem := doc.identify(); problem != nil {
		return nil, fail(*problem)
	}
	if repairing && (doc.Outer != nil || doc.API.Removed != "") {
		if problem := doc.upgradeLegacy(); problem != nil {
			return nil, fail(*problem)
		}
	}
	doc.fillItems(doc.Root, doc.object(), "")
	doc.Flow = bytes.HasPrefix(bytes.TrimSpace(doc.Text), []byte("{"))
	if repairing && !doc.Policy {
		doc.Notes = append(doc.Notes, repair(doc.Root)...)
	}
	return doc, nil
}

// load parses the source into its objects.
func (d *Document) load(source []byte, repairing bool) ([]*yaml.Node, *Problem) {
	objects, problem := decodeAll(source)
	if problem != nil && repairing {
		objects, problem = d.repairSource(source, problem)
	}
	if problem != nil {
		return nil, problem
	}
	for _, o := range objects {
		if problem := expandAliases(o); problem != nil {
			return nil, problem
		}
	}
	return objects, nil
}

// identify determines the kind and config API of the document.
func (d *Document) identify() *Problem {
	versionKey, version := node.Lookup(d.Root, "apiVersion")
	kindKey, kind := node.Lookup(d.Root, "kind")
	switch {
	case versionKey == nil || kindKey == nil:
		missing := "kind"
		if versionKey == nil {
			missing = "apiVersion"
		}
		return &Problem{Line: d.Root.Line, Column: d.Root.Column, Message: missing + " is missing",
			Try: "start the file with `apiVersion: " + ConfigGroup + "/v1` and `kind: " + ConfigKind + "`"}
	case node.Text(kind) == PolicyKind && isPolicyVersion(node.Text(version)):
		d.Policy, d.API = true, policyAPI()
		d.lenientExtenders()
		return nil
	case node.Text(kind) == "ConfigMap":
		return &Problem{Line: kind.Line, Column: kind.Column, Message: "the ConfigMap has no key with a configuration",
			Try: "put the text under `data:` in a separate file"}
	case node.Text(kind) != ConfigKind:
		return &Problem{Line: kind.Line, Column: kind.Column, Message: fmt.Sprintf("unexpected kind %q: must be %s",
			kind.Value, ConfigKind), Try: "pass the scheduler's configuration; pmk-sched creates the other objects"}
	}
	group, name, _ := strings.Cut(node.Text(version), "/")
	if group != ConfigGroup {
		return &Problem{Line: version.Line, Column: version.Column,
			Message: fmt.Sprintf("unexpected apiVersion %q: must be in group %s", version.Value,
				ConfigGroup), Try: "use one of " + strings.Join(APIVersions(), ", ")}
	}
	for _, a := range legacyAPIs() {
		if a.Name == name {
			d.API = a
			return nil
		}
	}
	found, ok := APINamed(name)
	if !ok {
		return &Problem{Line: version.Line, Column: version.Column, Message: fmt.Sprintf("unknown config API %q",
			version.Value), Try: "use one of " + strings.Join(APIVersions(), ", ")}
	}
	d.API = found
	return nil
}

// Profiles returns the document's profiles, and adds the implicit one if there are none.
func (d *Document) Profiles() []*yaml.Node {
	all := node.List(d.Root, "profiles")
	if len(all.Content) == 0 {
		all.Content = append(all.Content, node.Mapping())
	}
	return all.Content
}
