// Package validate checks a document against the built-in rules of a release: the decoder's, the validation's and those
// of the scheduler's startup.
package validate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// validator is a document before the scheduler of a release, in the steps in
// which that looks at it. Each step is left out where one before found something.
type validator struct {
	Options
	doc      *schema.Document
	api      schema.API
	problems schema.Problems
}

// Options say for which release a document is validated.
type Options struct {
	Release versions.Release
	Rules   versions.Rules
	// Plugins names the plugins that are compiled in beside the in-tree ones.
	Plugins []string
}

// Document returns the reasons for which the scheduler of the release refuses a document.
func Document(doc *schema.Document, o Options) schema.Problems {
	j := newValidator(doc, o)
	if !j.checkFields() && !j.checkValues() {
		j.checkStartup()
	}
	return j.problems
}

// Addresses returns what is wrong with the addresses of the plain HTTP listener.
func Addresses(doc *schema.Document, o Options) schema.Problems {
	j := newValidator(doc, o)
	j.addresses()
	return j.problems
}

func newValidator(doc *schema.Document, o Options) *validator {
	return &validator{Options: o, doc: doc, api: doc.API.Of(o.Release.Minor)}
}

func (j *validator) add(n *yaml.Node, try, format string, args ...any) {
	j.problems.Add(node.At(n), try, format, args...)
}

// checkFields is the strict decoder of the config API. Like the others it says
// whether it found something.
func (j *validator) checkFields() (wrong bool) {
	if j.doc.Policy {
		if !j.Rules.Policy {
			j.add(node.Get(j.doc.Root, "kind"), "convert it: `pmk-sched profile convert --to "+j.Release.String()+"`", "%s does not read a Policy; 1.22 was the last to", j.Release)
			return true
		}
		j.doc.Check(&j.problems, j.api)
		return len(j.problems) > 0
	}
	if !slices.Contains(j.Rules.Accepted, j.api.GroupVersion()) {
		j.add(node.Get(j.doc.Root, "apiVersion"), "convert it: `pmk-sched profile convert --to "+j.Release.String()+"`",
			"%s does not read %s; it reads %s", j.Release, j.api.Name, strings.Join(schema.ShortNames(j.Rules.Accepted), " and "))
		return true
	}
	j.doc.Check(&j.problems, j.api)
	return len(j.problems) > 0
}
