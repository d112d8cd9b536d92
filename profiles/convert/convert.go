// Package convert converts a configuration from one config API to another.
package convert

import (
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Options say for which release a document is converted.
type Options struct {
	Release versions.Release
	Rules   versions.Rules
	// To is the config API to write.
	To schema.API
	// Plugins names the plugins that are compiled in beside the in-tree ones, points
	// has the extension points of those of them that are known.
	Plugins []string
	Points  map[string][]string
	// Deploy says that the document is deployed: its addresses are set, and it names
	// no plugin that is not compiled in. Else it stays the user's own, and nothing of a
	// deployment is forced on it.
	Deploy bool
	// InsecurePort is the port of the plain HTTP listener of a deployment; 0 is
	// DefaultInsecurePort.
	InsecurePort int
}

// Ports are the ports that a configuration speaks of.
type Ports struct {
	// Insecure is the loopback port that the rendered configuration makes the
	// scheduler listen on with plain HTTP: 1.20–1.22 only, else 0.
	Insecure int `json:"insecure,omitempty"`
	// Source is the port that the source gave for health and metrics, else 0.
	// From 1.23 on nothing listens there.
	Source int `json:"source,omitempty"`
}

// DefaultInsecurePort is the loopback port of the plain HTTP listener of
// 1.20–1.22 where the caller names none. 10251 is the default scheduler's, 10252
// was the controller manager's.
const DefaultInsecurePort = 10261

// Result is what a release needs beside the document.
type Result struct {
	// Args are flags for what the document cannot say any more.
	Args  []string
	Ports Ports
}

// conversion converts one document from the config API that it was written in to
// the one that a release reads.
type conversion struct {
	*schema.Report
	Options
	Result
	doc   *schema.Document
	from  schema.API
	minor int
}

// Document converts a document in place. Each step leaves a document that the
// following ones understand; none looks at what a later one writes.
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

// accepted names the config APIs that the release reads.
func (c *conversion) accepted() string {
	return strings.Join(schema.ShortNames(c.Rules.Accepted), " and ")
}

// dropEmptyProfile takes out the profile that a document without any stands for, where
// nothing had to be written into it.
func (c *conversion) dropEmptyProfile() {
	all := node.Get(c.doc.Root, "profiles")
	if len(node.Items(all)) == 1 && node.IsMapping(all.Content[0]) && len(all.Content[0].Content) == 0 {
		node.Remove(c.doc.Root, "profiles")
	}
	if c.doc.Flow {
		node.BlockStyle(c.doc.Root)
	}
}
