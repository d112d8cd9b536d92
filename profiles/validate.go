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

// ValidateRequest says which document is to be judged, and for which release.
type ValidateRequest struct {
	Release versions.Release
	// Source and SourceName are those of [ConvertRequest].
	Source     []byte
	SourceName string
	// Plugins names the plugins that are compiled in beside the in-tree ones.
	Plugins []string
}

// Validation is what is known of a document without the scheduler that will read
// it.
type Validation struct {
	// APIVersion is what the document says it is; Kind is
	// KubeSchedulerConfiguration or Policy.
	APIVersion, Kind string
	// Plugins are the plugins that it enables or configures and that are not
	// in-tree in any release, sorted.
	Plugins []string
	// Problems are the reasons for which the release would refuse it, by line; none
	// where it is valid.
	Problems []schema.Problem

	doc *schema.Document
	// listens says that the release listens on addresses that a configuration names,
	// and that nothing is wrong with them.
	listens bool
}

// Valid says whether the release would take the document.
func (v *Validation) Valid() bool { return len(v.Problems) == 0 }

// Standalone returns the document with kubeconfig in the place of the one that it
// names, and without the files of its extenders: a scheduler that reads it wants
// all of them to exist. Up to 1.22 it names the addresses where that scheduler
// would listen, so that they can be replaced.
func (v *Validation) Standalone(kubeconfig string) ([]byte, error) {
	if v.listens {
		v.doc.Root.Style &^= yaml.FlowStyle
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

// Validate judges a document as the scheduler of a release would: its decoder,
// its validation, and what it checks when it starts. Nothing is mended. The error
// is an [*Error] where the source is no document that any release reads.
func Validate(r ValidateRequest) (*Validation, error) {
	rules, _, err := versions.Select(r.Release)
	if err != nil {
		return nil, fmt.Errorf("validate scheduler configuration: %w", err)
	}
	doc, err := schema.Read(cmp.Or(r.SourceName, "configuration"), r.Source, false)
	if err != nil {
		return nil, err
	}
	o := validate.Options{Release: r.Release, Rules: rules, Plugins: r.Plugins}
	found := validate.Document(doc, o)
	if len(found) == 0 && doc.Policy {
		found = policy.CheckNames(doc)
	}
	return &Validation{
		APIVersion: node.Text(doc.Root, "apiVersion"), Kind: node.Text(doc.Root, "kind"), Plugins: foreignPlugins(doc.Root), Problems: found.Sorted(), doc: doc,
		listens: rules.InsecurePort && !doc.Policy && len(validate.Addresses(doc, o)) == 0,
	}, nil
}

// foreignPlugins returns the plugins that no release has in-tree.
func foreignPlugins(root *yaml.Node) []string {
	var names []string
	add := func(e *yaml.Node) {
		if name := node.Text(e, "name"); name != "" && name != schema.AllPlugins && !schema.EverInTree(name) {
			names = append(names, name)
		}
	}
	for _, p := range node.Items(root, "profiles") {
		for _, set := range schema.PluginSets(node.Get(p, "plugins")) {
			for _, e := range node.Items(set.Node, "enabled") {
				add(e)
			}
		}
		for _, e := range node.Items(p, "pluginConfig") {
			add(e)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
