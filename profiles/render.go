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
	Extenders []schema.Extender
	// Lossy leaves out what cannot be carried and tells each loss in a [Note],
	// where it would be an error else.
	Lossy bool
	// InsecurePort is the loopback port for the plain HTTP listener of 1.20–1.22,
	// which a configuration cannot switch off; 0 is DefaultInsecurePort.
	// Releases from 1.23 on have none.
	InsecurePort int
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
	Ports convert.Ports
	// Notes tell what changed from the source and why, by line.
	Notes []schema.Note
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
	to, _ := schema.APINamed(strings.TrimPrefix(rules.Render, schema.ConfigGroup+"/"))
	d := deployment{Report: schema.NewReport(doc, r.Lossy), request: r, doc: doc, to: to.Of(r.Release.Minor)}
	converted := convertDocument(doc, d.Report, r.SchedulerName, convert.Options{
		Release: r.Release, Rules: rules, To: to, Plugins: r.Plugins, Points: pluginPoints(r.Enable), Deploy: true, InsecurePort: r.InsecurePort,
	})
	d.extenders()
	d.identity()
	d.connection()
	leaderElect := d.election()
	if doc.Preset { // nobody wrote it; the extenders somebody did
		d.Notes = slices.DeleteFunc(d.Notes, func(n schema.Note) bool { return !n.Warning })
	}
	d.enablePlugins()
	if err := d.Problems.Err(doc.Name); err != nil {
		return nil, err
	}
	text, err := schema.Encode(doc.Root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	for _, warning := range warnings {
		d.Note(nil, "%s", warning)
	}
	return &Rendered{
		APIVersion:     to.GroupVersion(),
		YAML:           text,
		LeaseNamespace: r.LeaseNamespace,
		LeaderElect:    leaderElect,
		Args:           converted.Args,
		Ports:          converted.Ports,
		Notes:          d.SortedNotes(),
		Plugins:        namedPlugins(doc),
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

// load returns the document that the request names.
func load(r *Request) (*schema.Document, error) {
	if len(r.Source) > 0 || r.SourceName != "" {
		if r.Preset != "" {
			return nil, &schema.Error{Problems: []schema.Problem{{
				Message: fmt.Sprintf("render scheduler configuration: both the preset %q and a configuration were given", r.Preset),
				Try:     "give one of them; a configuration can hold what the preset does (profile show)",
			}}}
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
