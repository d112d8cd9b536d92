// Package convert converts a configuration from one config API to another.
package convert

import (
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Options are the release to convert for, and how.
type Options struct {
	Release versions.Release
	Rules   versions.Rules
	// To is the target config API.
	To schema.API
	// Plugins are the names of the compiled-in plugins; Points are their extension points, as far
	// as they are known.
	Plugins []string
	Points  map[string][]string
	// Deploy is set if pmk-sched deploys the document: it sets the addresses, and rejects plugins
	// that are not compiled in. Otherwise the document stays as the user wrote it.
	Deploy bool
	// InsecurePort is the port for a deployment's plain HTTP listener. Defaults to
	// DefaultInsecurePort.
	InsecurePort int
}

// Ports are the plain HTTP ports of a configuration.
type Ports struct {
	// Insecure is the loopback port of the plain HTTP listener in the rendered configuration:
	// 1.20–1.22 only, otherwise 0.
	Insecure int `json:"insecure,omitempty"`
	// Source is the port for health and metrics in the source, otherwise 0. From 1.23 nothing
	// listens on it.
	Source int `json:"source,omitempty"`
}

// DefaultInsecurePort is the default loopback port for the plain HTTP listener in 1.20–1.22. The
// default scheduler has 10251, the controller manager had 10252.
const DefaultInsecurePort = 10261

// Result is the input that the scheduler needs in addition to the document.
type Result struct {
	// Args are flags that replace fields of the source.
	Args  []string
	Ports Ports
}

// conversion converts one document to the config API that a release reads.
type conversion struct {
	*schema.Report
	Options
	Result
	doc   *schema.Document
	from  schema.API
	minor int
}

// Document converts a document in place. The steps are ordered: none depends on the output of a
// later one.
func Document(doc *schema.Document, r *schema.Report, o Options) Result {
	minor := o.Release.Minor
	o.To = o.To.Of(minor)
	c := &conversion{Report: r, Options: o, doc: doc, minor: minor, from: doc.API}
	if c.from.Minor == 0 {
		c.from = doc.API.Of(doc.API.SourceMinor(minor))
	}
	c.setAPIVersion()
	if c.Deploy {
		c.deployedAddresses()
	} else {
		c.ownAddresses()
	}
	for _, profile := range doc.Profiles() {
		p := profileConversion{conversion: c, profile: profile, sets: node.Child(profile, "plugins")}
		p.run()
	}
	c.alignQueueSort()
	c.dropUnsupported(doc.Root, schema.Configuration(), "")
	if !c.Deploy {
		c.ownElection()
		c.dropEmptyProfile()
	}
	return c.Result
}

// setAPIVersion writes the target's apiVersion.
func (c *conversion) setAPIVersion() {
	_, version := node.Lookup(c.doc.Root, "apiVersion")
	if c.from.Name == c.To.Name {
		return
	}
	if !c.doc.Policy {
		c.Note(version, "config API %s becomes %s: %s reads %s", c.from.Name, c.To.Name, c.Release, c.accepted())
	}
	version.Value = c.To.GroupVersion()
}

// accepted returns the config APIs that the release reads.
func (c *conversion) accepted() string {
	return strings.Join(schema.ShortNames(c.Rules.Accepted), " and ")
}

// dropEmptyProfile removes the implicit profile if nothing was written to it.
func (c *conversion) dropEmptyProfile() {
	all := node.Get(c.doc.Root, "profiles")
	if len(node.Items(all)) == 1 && node.IsMapping(all.Content[0]) && len(all.Content[0].Content) == 0 {
		node.Remove(c.doc.Root, "profiles")
	}
	if c.doc.Flow {
		node.BlockStyle(c.doc.Root)
	}
}
