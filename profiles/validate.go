package profiles

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/policy"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/profiles/validate"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ValidateRequest is a document to validate, and the release to validate it for.
type ValidateRequest struct {
	Release versions.Release
	// Source and SourceName are as in [ConvertRequest].
	Source     []byte
	SourceName string
	// Plugins are the names of the compiled-in plugins.
	Plugins []string
}

// Validation is the result of validating a document without its scheduler.
type Validation struct {
	// APIVersion is the document's apiVersion; Kind is KubeSchedulerConfiguration or Policy.
	APIVersion, Kind string
	// Plugins are the sorted names of plugins that the document enables or configures and that no
	// release has in-tree.
	Plugins []string
	// Problems are the reasons for which the release rejects the document, by line.
	Problems []schema.Problem
	// Warnings are settings that the release accepts and ignores, or that rarely work as intended, by
	// line.
	Warnings []schema.Note

	doc *schema.Document
	// listens is set if the release listens on addresses in a configuration, and those are valid.
	listens bool
}

// Valid reports whether the release accepts the document.
func (v *Validation) Valid() bool { return len(v.Problems) == 0 }

// Err returns the problems as an [*Error], or nil if the document is valid.
func (v *Validation) Err() error { return schema.Problems(v.Problems).Err(v.doc.Name) }

// Standalone returns the document with another kubeconfig, and without its extenders' files, which
// would have to exist. Up to 1.22 it also sets the addresses of the plain HTTP listener, so that
// they can be replaced.
func (v *Validation) Standalone(kubeconfig string) ([]byte, error) {
	if v.listens {
		for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
			node.Put(v.doc.Root, name, node.String("127.0.0.1:"+schema.SchedulerInsecurePort))
		}
	}
	if client := node.Get(v.doc.Root, "clientConnection"); node.Text(client, "kubeconfig") != "" {
		node.Put(client, "kubeconfig", node.String(kubeconfig))
	}
	schema.DropExtenderFiles(v.doc.Root)
	written, err := schema.Encode(v.doc.Root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return written, nil
}

// Validate checks a document as the scheduler of a release would: decoding, validation and startup.
// Nothing is repaired. The error is an [*Error] if the source is not a document that any release
// reads.
func Validate(r ValidateRequest) (*Validation, error) {
	rules, err := versions.Select(r.Release)
	if err != nil {
		return nil, fmt.Errorf("validate scheduler configuration: %w", err)
	}
	doc, err := schema.Read(cmp.Or(r.SourceName, "configuration"), r.Source, false)
	if err != nil {
		return nil, err
	}
	o := validate.Options{Release: r.Release, Rules: rules, Plugins: r.Plugins}
	rejected, accepted := validate.Document(doc, o).Split()
	if len(rejected) == 0 && doc.Policy {
		rejected = policy.CheckNames(doc)
	}
	v := &Validation{
		APIVersion: node.Text(doc.Root, "apiVersion"), Kind: node.Text(doc.Root, "kind"),
		Plugins: foreignPlugins(doc.Root), Problems: rejected.Sorted(), doc: doc,
		listens: rules.InsecurePort && !doc.Policy && len(validate.Addresses(doc, o)) == 0,
	}
	notes := schema.NewReport(doc, false)
	for _, p := range accepted.Sorted() {
		notes.Notes = append(notes.Notes, p.Warning())
	}
	v.Warnings = slices.DeleteFunc(notes.SortedNotes(), func(n schema.Note) bool { return !n.IsWarning() })
	return v, nil
}

// foreignPlugins returns the plugins that are not in-tree in any release.
func foreignPlugins(root *yaml.Node) []string {
	return slices.DeleteFunc(namedPlugins(root), func(name string) bool {
		return name == "" || name == schema.AllPlugins || versions.EverInTree(name)
	})
}
