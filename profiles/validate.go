package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

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
	Problems []Problem

	doc *document
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
		v.doc.root.Style &^= yaml.FlowStyle
		for _, name := range []string{"healthzBindAddress", "metricsBindAddress"} {
			put(v.doc.root, name, str("127.0.0.1:"+defaultInsecurePort))
		}
	}
	if client := get(v.doc.root, "clientConnection"); text(get(client, "kubeconfig")) != "" {
		put(client, "kubeconfig", str(kubeconfig))
	}
	dropExtenderFiles(v.doc.root)
	written, err := encode(v.doc.root)
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
	doc, err := read(cmp.Or(r.SourceName, "configuration"), r.Source, false)
	if err != nil {
		return nil, err
	}
	o := validateOptions{release: r.Release, rules: rules, plugins: r.Plugins}
	found := validateDocument(doc, o)
	if len(found) == 0 && doc.policy {
		found = policyNames(doc)
	}
	return &Validation{
		APIVersion: text(get(doc.root, "apiVersion")), Kind: text(get(doc.root, "kind")), Plugins: foreignPlugins(doc.root), Problems: found.sorted(), doc: doc,
		listens: rules.InsecurePort && !doc.policy && len(validateAddresses(doc, o)) == 0,
	}, nil
}

// foreignPlugins returns the plugins that no release has in-tree.
func foreignPlugins(root *yaml.Node) []string {
	var names []string
	add := func(e *yaml.Node) {
		if name := text(get(e, "name")); name != "" && name != everyPlugin && !everInTree(name) {
			names = append(names, name)
		}
	}
	for _, p := range items(get(root, "profiles")) {
		for _, set := range pluginSets(get(p, "plugins")) {
			for _, e := range items(get(set.node, "enabled")) {
				add(e)
			}
		}
		for _, e := range items(get(p, "pluginConfig")) {
			add(e)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judgement is a document before the scheduler of a release, in the steps in
// which that looks at it. Each step is left out where one before found something.
type judgement struct {
	validateOptions
	doc      *document
	api      api
	problems problems
}

// validateOptions say for which release a document is validated.
type validateOptions struct {
	release versions.Release
	rules   versions.Rules
	// plugins names the plugins that are compiled in beside the in-tree ones.
	plugins []string
}

// validateDocument returns the reasons for which the scheduler of the release refuses a document.
func validateDocument(doc *document, o validateOptions) problems {
	j := newJudgement(doc, o)
	if !j.decodes() && !j.validates() {
		j.starts()
	}
	return j.problems
}

// validateAddresses returns what is wrong with the addresses of the plain HTTP listener.
func validateAddresses(doc *document, o validateOptions) problems {
	j := newJudgement(doc, o)
	j.addresses()
	return j.problems
}

func newJudgement(doc *document, o validateOptions) *judgement {
	return &judgement{validateOptions: o, doc: doc, api: doc.api.of(o.release.Minor)}
}

func (j *judgement) add(n *yaml.Node, try, format string, args ...any) {
	j.problems.add(at(n), try, format, args...)
}

// decodes is the strict decoder of the config API. Like the others it says
// whether it found something.
func (j *judgement) decodes() (wrong bool) {
	if j.doc.policy {
		if !j.rules.Policy {
			j.add(get(j.doc.root, "kind"), "convert it: `pmk-sched profile convert --to "+j.release.String()+"`", "%s does not read a Policy; 1.22 was the last to", j.release)
			return true
		}
		j.doc.check(&j.problems, j.api)
		return len(j.problems) > 0
	}
	if !slices.Contains(j.rules.Accepted, j.api.version()) {
		j.add(get(j.doc.root, "apiVersion"), "convert it: `pmk-sched profile convert --to "+j.release.String()+"`",
			"%s does not read %s; it reads %s", j.release, j.api.name, strings.Join(shortNames(j.rules.Accepted), " and "))
		return true
	}
	j.doc.check(&j.problems, j.api)
	return len(j.problems) > 0
}
