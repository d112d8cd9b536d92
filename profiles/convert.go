package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/convert"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ConvertRequest is a document to convert, and its target.
type ConvertRequest struct {
	// API is the config API to write: "v1beta3", or with its group. If it is empty, [Render]'s
	// config API for Release is written.
	API string
	// Release is the release that will read the result. Zero means the newest tested release that
	// reads API. One of the two is required; [Target] parses either.
	Release versions.Release

	// Source is a KubeSchedulerConfiguration in any config API, a legacy Policy (JSON or YAML), or a
	// ConfigMap with one of them; SourceName is its name in errors.
	Source     []byte
	SourceName string

	// Plugins are the names of the compiled-in plugins.
	Plugins []string
	// Lossy leaves out settings that cannot be converted, with a [Note] for each loss, instead of
	// failing.
	Lossy bool
	// SchedulerName is the name for a Policy's only profile, which has no name. Defaults to the
	// release's default, default-scheduler.
	SchedulerName string
}

// Converted is a converted document. Unlike the result of [Render] it has no fields for a
// deployment.
type Converted struct {
	// APIVersion is the group and version of the config API.
	APIVersion string
	// Release is the release that it is written for.
	Release versions.Release
	// YAML is the document with the source's comments. A comment at the top lists the flags that
	// kube-scheduler needs in addition.
	YAML []byte
	// Args are flags for settings of the source that the release reads only from its command line.
	Args []string
	// Notes are the changes to the source, by line; losses are marked.
	Notes []schema.Note
}

// Convert converts a document to an older or newer config API with the same meaning. Problems of
// the source, and losses unless they are allowed, are an [*Error] with their lines and columns.
func Convert(r ConvertRequest) (*Converted, error) {
	to, release, err := r.target()
	if err != nil {
		return nil, err
	}
	rules, err := versions.Select(release)
	if err != nil {
		return nil, fmt.Errorf("convert scheduler configuration: %w", err)
	}
	doc, err := schema.Parse(cmp.Or(r.SourceName, "configuration"), r.Source)
	if err != nil {
		return nil, err
	}
	notes := schema.NewReport(doc, r.Lossy)
	o := convert.Options{Release: release, Rules: rules, To: to, Plugins: r.Plugins}
	converted := convertDocument(doc, notes, r.SchedulerName, o)
	reportExtenders(notes, release, doc.Root, nil)
	checkConverted(notes, doc.Root, o)
	if err := notes.Problems.Err(doc.Name); err != nil {
		return nil, err
	}
	text, err := schema.Encode(doc.Root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	if len(converted.Args) > 0 {
		text = append([]byte("# Give kube-scheduler these flags beside this file: "+strings.Join(converted.Args, " ")+"\n"),
			text...)
	}
	return &Converted{APIVersion: to.GroupVersion(), Release: release, YAML: text, Args: converted.Args,
		Notes: notes.SortedNotes()}, nil
}

// target returns the config API and the release of the request.
func (r ConvertRequest) target() (schema.API, versions.Release, error) {
	if r.Release.IsZero() && r.API == "" {
		return schema.API{}, r.Release, errors.New("convert scheduler configuration: a config API or a release is required")
	}
	release := r.Release
	name := r.API
	if name == "" {
		rules, err := versions.Select(release)
		if err != nil {
			return schema.API{}, release, fmt.Errorf("convert scheduler configuration: %w", err)
		}
		name = rules.Render
	}
	to, ok := schema.APINamed(strings.TrimPrefix(name, schema.ConfigGroup+"/"))
	if !ok {
		return schema.API{}, release,
			schema.NewError("use one of "+strings.Join(apiNames(), ", "), "unknown config API %q", name)
	}
	if release.IsZero() {
		return to, newestReader(to), nil
	}
	rules, err := versions.Select(release)
	if err != nil {
		return schema.API{}, release, fmt.Errorf("convert scheduler configuration: %w", err)
	}
	if !slices.Contains(rules.Accepted, to.GroupVersion()) {
		return schema.API{}, release, schema.NewError("it reads "+strings.Join(schema.ShortNames(rules.Accepted), " and "),
			"%s does not read %s", release, to.Name)
	}
	return to, release, nil
}

// newestReader returns the newest tested release that reads a config API.
func newestReader(a schema.API) versions.Release {
	for _, release := range versions.Releases() {
		if slices.Contains(release.Rules().Accepted, a.GroupVersion()) {
			return release
		}
	}
	return versions.Release{}
}

// Target parses a conversion's target: a config API ("v1beta3",
// "kubescheduler.config.k8s.io/v1beta3") or a release ("v1.24.3"). The other result is zero.
func Target(to string) (api string, release versions.Release, err error) {
	if a, ok := schema.APINamed(strings.TrimPrefix(to, schema.ConfigGroup+"/")); ok {
		return a.Name, release, nil
	}
	if to == schema.PolicyKind {
		return "", release, schema.NewError("use v1beta1 for releases before 1.23", "converting to a Policy is not supported")
	}
	release, err = versions.Parse(to)
	if err != nil {
		return "", release, schema.NewError("use one of "+strings.Join(apiNames(), ", ")+", or a release such as v1.24.3",
			"invalid target %q: must be a config API or a release", to)
	}
	return "", release, nil
}

// apiNames returns the version of every config API, oldest first.
func apiNames() []string {
	return schema.ShortNames(schema.APIVersions())
}
