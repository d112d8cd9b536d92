// Package validate checks a document against a release's built-in rules: its decoder, its
// validation, and the startup of its scheduler.
package validate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// validator checks a document in the same steps as a release's scheduler. A step is skipped if an
// earlier one found a problem.
type validator struct {
	Options
	doc      *schema.Document
	api      schema.API
	problems schema.Problems
}

// Options are the release to validate for.
type Options struct {
	Release versions.Release
	Rules   versions.Rules
	// Plugins are the names of the compiled-in plugins.
	Plugins []string
	// Converted is set if the document was converted for the release. The conversion reports the names
	// of plugins that the release does not have, and checks the extenders. The scheduler's flags may
	// enable feature gates.
	Converted bool
}

// Document returns the problems for which the scheduler of the release rejects a document, and what
// it accepts and ignores.
func Document(doc *schema.Document, o Options) schema.Problems {
	v := newValidator(doc, o)
	if !v.checkVersion() {
		return v.problems
	}
	if !v.checkFields() && !v.checkValues() {
		v.checkStartup()
	}
	v.checkNames()
	v.checkIgnored()
	return v.problems
}

// Addresses returns the problems with the plain HTTP listener's addresses.
func Addresses(doc *schema.Document, o Options) schema.Problems {
	v := newValidator(doc, o)
	v.addresses()
	return v.problems
}

func newValidator(doc *schema.Document, o Options) *validator {
	return &validator{Options: o, doc: doc, api: doc.API.Of(o.Release.Minor)}
}

func (v *validator) add(n *yaml.Node, try, format string, args ...any) {
	v.problems.Add(node.At(n), try, format, args...)
}

// warn reports something that the scheduler accepts and ignores.
func (v *validator) warn(n *yaml.Node, try, format string, args ...any) {
	v.problems.AddAccepted(node.At(n), try, format, args...)
}

// rejected reports whether the scheduler rejects the document for one of the problems.
func (v *validator) rejected() bool {
	return slices.ContainsFunc(v.problems, func(p schema.Problem) bool { return !p.Accepted })
}

// checkVersion reports whether the release reads the kind and the config API.
func (v *validator) checkVersion() bool {
	try := "convert it: `pmk-sched profile convert --to " + v.Release.String() + "`"
	switch {
	case v.doc.Policy && !v.Rules.Policy:
		v.add(node.Get(v.doc.Root, "kind"), try, "%s does not read a Policy; the last release to do so was 1.22", v.Release)
		return false
	case !v.doc.Policy && !slices.Contains(v.Rules.Accepted, v.api.GroupVersion()):
		removed := ""
		if v.api.Removed != "" {
			removed = ", which " + v.api.Removed + " removed"
		}
		v.add(node.Get(v.doc.Root, "apiVersion"), try, "%s does not read %s%s; it reads %s", v.Release, v.api.Name, removed,
			strings.Join(schema.ShortNames(v.Rules.Accepted), " and "))
		return false
	}
	return true
}

// checkFields applies the strict decoder of the config API. Like the other steps it reports whether
// it found a problem.
func (v *validator) checkFields() (wrong bool) {
	v.doc.Check(&v.problems, v.api)
	return v.rejected()
}
