package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/convert"
	"github.com/pmk-sched/pmk-sched/profiles/policy"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Request is the configuration to render.
type Request struct {
	// Release is the release of the kube-scheduler that reads it.
	Release versions.Release
	// SchedulerName is the name in the pods' spec.schedulerName, and the default name of the leader
	// election lease. LeaseNamespace is the lease's namespace. Defaults to kube-system.
	SchedulerName, LeaseNamespace string
	// LeaseName overrides the lease's name: the default scheduler's is kube-scheduler.
	LeaseName string
	// Kubeconfig is the kubeconfig's path as the scheduler's process sees it.
	Kubeconfig string
	// LeaderElect enables leader election. Otherwise the source decides, and the default is disabled.
	LeaderElect bool

	// Preset is a preset's name, see [Presets]; or Source is a configuration, with SourceName as its
	// name in errors (a file name). If neither is set the preset is "default"; setting both is an
	// error.
	Preset     string
	Source     []byte
	SourceName string

	// Plugins are the names of the compiled-in plugins: a configuration may name only these and
	// in-tree ones.
	Plugins []string
	// Enable are compiled-in plugins to enable unless the source names them. They need not be in
	// Plugins.
	Enable []Plugin
	// Extenders are appended to the source's extenders.
	Extenders []schema.Extender
	// Lossy leaves out settings that cannot be converted, with a [Note] for each loss, instead of
	// failing.
	Lossy bool
	// Policy makes the scheduler read its predicates, priorities and extenders from a legacy Policy:
	// see [RenderPolicy].
	Policy bool
	// Confined refuses files that the source, or a plugin's arguments in Enable, name: they come from
	// a cluster, and the scheduler runs on the user's machine.
	Confined bool
	// InsecurePort is the loopback port for the plain HTTP listener in 1.20–1.22, which a
	// configuration cannot disable. Defaults to DefaultInsecurePort.
	InsecurePort int
}

// Rendered is a configuration for a release.
type Rendered struct {
	// APIVersion is the group and version of the config API.
	APIVersion string
	// YAML is the document.
	YAML []byte
	// LeaseNamespace is the namespace of the leader election lease.
	LeaseNamespace string
	// LeaderElect is set if leader election is enabled, so that several replicas can run.
	LeaderElect bool
	// Args are flags for settings of the source that the release reads only from its command line.
	Args []string
	// Ports are the plain HTTP ports, not the secure port.
	Ports convert.Ports
	// Notes are the changes to the source, by line.
	Notes []schema.Note
	// Plugins are the sorted names of the plugins that the configuration enables or configures.
	Plugins []string
	// Files are the sorted paths, as the scheduler's process sees them, of the extenders' certificates
	// and keys. The scheduler exits if one is missing.
	Files []string
	// Policy is the legacy Policy that the scheduler reads in addition: see [RenderPolicy]. Nil if
	// it reads none.
	Policy []byte
}

// Render calls [Render], or [RenderPolicy] if the scheduler reads a Policy.
func (r Request) Render() (*Rendered, error) {
	if r.Policy {
		return RenderPolicy(r)
	}
	return Render(r)
}

// Render returns the requested configuration in the config API that the release reads. Problems of
// the source, and losses unless they are allowed, are an [*Error] with their lines and columns.
// Render returns either a complete result or an error.
func Render(r Request) (*Rendered, error) {
	rules := r.Release.Rules()
	if r.SchedulerName == "" || r.Kubeconfig == "" {
		return nil,
			errors.New("render scheduler configuration: the scheduler's name and the path of its kubeconfig are required")
	}
	if _, err := CheckExtenders(r.Release, r.Extenders); err != nil {
		return nil, err // the problem is in the request and not in the source
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
	to, _ := schema.APINamed(strings.TrimPrefix(rules.Render, schema.ConfigGroup+"/"))
	d := deployment{Report: schema.NewReport(doc, r.Lossy), request: r, doc: doc, to: to.Of(r.Release.Minor)}
	o := convert.Options{
		Release: r.Release, Rules: rules, To: to, Plugins: r.Plugins, Points: pluginPoints(r.Enable), Deploy: true,
		InsecurePort: r.InsecurePort,
	}
	converted := convertDocument(doc, d.Report, r.SchedulerName, o)
	d.extenders()
	d.identity()
	d.connection()
	leaderElect := d.election()
	if doc.Preset { // only the warnings are about the user's input, the extenders
		d.Notes = slices.DeleteFunc(d.Notes, func(n schema.Note) bool { return !n.Warning })
	}
	d.enablePlugins()
	checkConverted(d.Report, doc.Root, o)
	if r.Confined {
		confine(d.Report, doc.Root, r.Extenders)
	}
	if err := d.Problems.Err(doc.Name); err != nil {
		return nil, err
	}
	text, err := schema.Encode(doc.Root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	return &Rendered{
		APIVersion:     to.GroupVersion(),
		YAML:           text,
		LeaseNamespace: r.LeaseNamespace,
		LeaderElect:    leaderElect,
		Args:           converted.Args,
		Ports:          converted.Ports,
		Notes:          d.SortedNotes(),
		Plugins:        namedPlugins(doc.Root),
		Files:          schema.ExtenderFiles(doc.Root),
	}, nil
}

// convertDocument converts a document, a legacy Policy or a configuration.
func convertDocument(doc *schema.Document, r *schema.Report, schedulerName string, o convert.Options) convert.Result {
	if doc.Policy {
		policy.Convert(doc, r, schedulerName, o.To.Name)
	}
	return convert.Document(doc, r, o)
}

// load parses the source or preset of the request.
func load(r *Request) (*schema.Document, error) {
	if len(r.Source) > 0 || r.SourceName != "" {
		if r.Preset != "" {
			return nil, schema.NewError("use one of them; `pmk-sched profile show` prints a preset to start from",
				"render scheduler configuration: preset %q and a configuration exclude each other", r.Preset)
		}
		if r.SourceName == "" {
			r.SourceName = "configuration"
		}
		return schema.Parse(r.SourceName, r.Source)
	}
	if r.Preset == "" {
		r.Preset = "default"
	}
	return presetDocument(r.Preset)
}
