// Package profiles renders the scheduler configuration of one scheduler: a
// preset, or a user's own KubeSchedulerConfiguration written for any config API,
// carried to the one that a release reads.
//
// Three config APIs are written: v1beta1, v1beta3 and v1. Together they reach
// every release from 1.20 on, and v1beta2 is only read. What differs between
// the config APIs is data: tables say which field exists where (fields.go,
// args.go), which plugin is a default with which weight, and what becomes of one
// that is gone (plugins.go). A document is edited in place as YAML nodes, so that a person's comments and
// order survive, and every line that changed is told in a [Note].
package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Note is one thing that changed on the way from the source to the rendered
// configuration, and why. Line and Column count from 1 in the source; Line 0 is
// the document as a whole.
type Note struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	// Loss marks what could not be carried and was left out on demand.
	Loss bool `json:"loss,omitempty"`
	// Warning marks what is carried as it stands, and probably not as wished.
	Warning bool `json:"warning,omitempty"`
}

// String returns the note as "line 3: …", or the bare message for the whole
// document.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Message
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Message)
}

// DefaultInsecurePort is the loopback port of the plain HTTP listener of
// 1.20–1.22 where the caller names none. 10251 is the default scheduler's, 10252
// was the controller manager's.
const DefaultInsecurePort = 10261

// Request says which configuration is wanted, and for whom.
type Request struct {
	// Release is the release of the kube-scheduler that will read it.
	Release versions.Release
	// SchedulerName is the name that pods put in spec.schedulerName, and the
	// name of the leader election lease. LeaseNamespace holds that lease; empty
	// means kube-system.
	SchedulerName, LeaseNamespace string
	// LeaseName is the name of the lease where it is not SchedulerName: the default
	// scheduler's is kube-scheduler.
	LeaseName string
	// Kubeconfig is the path of the kubeconfig as the scheduler's process sees it.
	Kubeconfig string
	// LeaderElect turns leader election on, whatever the source says. Without
	// it the source decides, and is off where it says nothing.
	LeaderElect bool

	// Preset names a preset, see [Presets]; or Source holds a configuration,
	// and SourceName what to call it in errors (a file name). With neither the
	// preset is "default"; with both the request is refused.
	Preset     string
	Source     []byte
	SourceName string

	// Plugins names the plugins that were compiled in beside the in-tree ones:
	// the only other names that a configuration may use.
	Plugins []string
	// Enable are plugins that were compiled in and are to be enabled unless the
	// source names them itself. They need not stand in Plugins too.
	Enable []Plugin
	// Extenders are asked after those of the source.
	Extenders []Extender
	// Lossy leaves out what cannot be carried and tells each loss in a [Note],
	// where it would be an error else.
	Lossy bool
	// InsecurePort is the loopback port for the plain HTTP listener of 1.20–1.22,
	// which a configuration cannot switch off; 0 is DefaultInsecurePort.
	// Releases from 1.23 on have none.
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

// Rendered is a configuration that the release reads.
type Rendered struct {
	// APIVersion is the config API, group and version.
	APIVersion string
	// YAML is the document.
	YAML []byte
	// LeaseNamespace holds the leader election lease.
	LeaseNamespace string
	// LeaderElect says whether leader election is on, so that several replicas may
	// run.
	LeaderElect bool
	// Args are flags for what the source said in the configuration and the
	// release reads from its command line only.
	Args []string
	// Ports are those of the configuration, not the secure port.
	Ports Ports
	// Notes tell what changed from the source and why, by line.
	Notes []Note
	// Plugins are the plugins that the configuration enables or configures by
	// name, sorted.
	Plugins []string
	// Files are the paths, as the scheduler's process sees them, of the certificates
	// and keys that the configuration names for its extenders, sorted. A scheduler
	// that does not find one ends.
	Files []string
	// Policy is the legacy Policy that the scheduler reads beside the
	// configuration: see [RenderPolicy]. Nil where it reads none.
	Policy []byte
}

// Render returns the configuration that was asked for, in the config API that
// the release reads. What is wrong in the source is an [*Error] with every
// problem's line and column; what cannot be carried without losing its meaning
// is one too. Nothing is half-converted.
func Render(r Request) (*Rendered, error) {
	rules, warnings, err := versions.Select(r.Release)
	if err != nil {
		return nil, fmt.Errorf("render scheduler configuration: %w", err)
	}
	if r.SchedulerName == "" || r.Kubeconfig == "" {
		return nil, errors.New("render scheduler configuration: the scheduler's name and the path of its kubeconfig are needed")
	}
	if _, err := CheckExtenders(r.Release, r.Extenders); err != nil {
		return nil, err // their fault is not that of the source
	}
	r.LeaseNamespace = cmp.Or(r.LeaseNamespace, "kube-system")
	r.Plugins = slices.Clone(r.Plugins)
	for _, p := range r.Enable {
		r.Plugins = append(r.Plugins, p.Name)
	}
	doc, err := load(&r)
	if err != nil {
		return nil, err
	}
	to, _ := apiNamed(strings.TrimPrefix(rules.Render, configGroup+"/"))
	c := newConversion(r, rules, to, doc)
	c.run()
	if err := c.problems.err(c.doc.name); err != nil {
		return nil, err
	}
	text, err := doc.encode()
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	for _, warning := range warnings {
		c.note(nil, "%s", warning)
	}
	sortNotes(c.notes)
	return &Rendered{
		APIVersion:     to.version(),
		YAML:           text,
		LeaseNamespace: r.LeaseNamespace,
		LeaderElect:    c.leaderElect,
		Args:           c.args,
		Ports:          c.ports,
		Notes:          c.notes,
		Plugins:        c.namedPlugins(),
		Files:          extenderFiles(doc.root),
	}, nil
}

// load returns the document that the request names.
func load(r *Request) (*document, error) {
	if len(r.Source) > 0 || r.SourceName != "" {
		if r.Preset != "" {
			return nil, &Error{Problems: []Problem{{
				Message: fmt.Sprintf("render scheduler configuration: both the preset %q and a configuration were given", r.Preset),
				Try:     "give one of them; a configuration can hold what the preset does (profile show)",
			}}}
		}
		if r.SourceName == "" {
			r.SourceName = "configuration"
		}
		return parse(r.SourceName, r.Source)
	}
	if r.Preset == "" {
		r.Preset = "default"
	}
	return presetDocument(r.Preset)
}
