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

// ConvertRequest says which document is carried to which config API.
type ConvertRequest struct {
	// API is the config API to write: "v1beta3" or with its group. Empty is the one
	// that Render writes for Release.
	API string
	// Release is the release that will read the result, which decides what there is
	// to write. The zero value is the newest tested release that reads API. One of
	// the two is needed; [Target] reads either from what a person types.
	Release versions.Release

	// Source is a KubeSchedulerConfiguration of any config API, a legacy Policy
	// (JSON or YAML), or a ConfigMap around one of them; SourceName what to call it
	// in errors.
	Source     []byte
	SourceName string

	// Plugins names the plugins that are compiled in beside the in-tree ones.
	Plugins []string
	// Lossy leaves out what cannot be carried and tells each loss in a [Note],
	// where it would be an error else.
	Lossy bool
	// SchedulerName is the name of the only profile of a Policy, which has none of
	// its own; empty leaves it to the release: default-scheduler.
	SchedulerName string
}

// Converted is a document that was carried to another config API. It stays the
// user's own: nothing is forced on it, unlike what [Render] returns.
type Converted struct {
	// APIVersion is the config API, group and version.
	APIVersion string
	// Release is the release that it was written for.
	Release versions.Release
	// YAML is the document, with the comments of the source. Flags that have to be
	// given beside it stand in a comment at its head.
	YAML []byte
	// Args are flags for what the source said in the document and the release
	// reads from its command line only.
	Args []string
	// Notes tell what changed from the source and why, by line; losses are marked.
	Notes []schema.Note
}

// Convert carries a document to another config API with its meaning: upwards or
// downwards. What is wrong in the source, and what cannot be carried unless
// Lossy, is an [*Error] with every problem's line and column.
func Convert(r ConvertRequest) (*Converted, error) {
	to, release, err := r.target()
	if err != nil {
		return nil, err
	}
	rules, warnings, err := versions.Select(release)
	if err != nil {
		return nil, fmt.Errorf("convert scheduler configuration: %w", err)
	}
	doc, err := schema.Parse(cmp.Or(r.SourceName, "configuration"), r.Source)
	if err != nil {
		return nil, err
	}
	notes := schema.NewReport(doc, r.Lossy)
	converted := convertDocument(doc, notes, r.SchedulerName, convert.Options{Release: release, Rules: rules, To: to, Plugins: r.Plugins})
	if err := notes.Problems.Err(doc.Name); err != nil {
		return nil, err
	}
	text, err := schema.Encode(doc.Root)
	if err != nil {
		return nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	if len(converted.Args) > 0 {
		text = append([]byte("# Give kube-scheduler these flags beside this file: "+strings.Join(converted.Args, " ")+"\n"), text...)
	}
	for _, warning := range warnings {
		notes.Note(nil, "%s", warning)
	}
	return &Converted{APIVersion: to.GroupVersion(), Release: release, YAML: text, Args: converted.Args, Notes: notes.SortedNotes()}, nil
}

// target finds the config API and the release that belong to the request.
func (r ConvertRequest) target() (schema.API, versions.Release, error) {
	if r.Release.IsZero() && r.API == "" {
		return schema.API{}, r.Release, errors.New("convert scheduler configuration: neither config API nor release was named")
	}
	release := r.Release
	name := r.API
	if name == "" {
		rules, _, err := versions.Select(release)
		if err != nil {
			return schema.API{}, release, fmt.Errorf("convert scheduler configuration: %w", err)
		}
		name = rules.Render
	}
	to, ok := schema.APINamed(strings.TrimPrefix(name, schema.ConfigGroup+"/"))
	if !ok {
		return schema.API{}, release, &schema.Error{Problems: []schema.Problem{{Message: fmt.Sprintf("config API %q is not known", name), Try: "use one of " + strings.Join(apiNames(), ", ")}}}
	}
	if release.IsZero() {
		return to, newestReader(to), nil
	}
	rules, _, err := versions.Select(release)
	if err != nil {
		return schema.API{}, release, fmt.Errorf("convert scheduler configuration: %w", err)
	}
	if !slices.Contains(rules.Accepted, to.GroupVersion()) {
		return schema.API{}, release, &schema.Error{Problems: []schema.Problem{{
			Message: fmt.Sprintf("%s does not read %s", release, to.Name),
			Try:     "it reads " + strings.Join(schema.ShortNames(rules.Accepted), " and "),
		}}}
	}
	return to, release, nil
}

// newestReader returns the newest tested release that reads a config API.
func newestReader(a schema.API) versions.Release {
	for _, release := range versions.Releases() {
		if rules, _, err := versions.Select(release); err == nil && slices.Contains(rules.Accepted, a.GroupVersion()) {
			return release
		}
	}
	return versions.Release{}
}

// Target reads what a person names as the target of a conversion: a config API
// ("v1beta3", "kubescheduler.config.k8s.io/v1beta3") or a release ("v1.24.3").
// The other of the two results is then zero.
func Target(to string) (api string, release versions.Release, err error) {
	if a, ok := schema.APINamed(strings.TrimPrefix(to, schema.ConfigGroup+"/")); ok {
		return a.Name, release, nil
	}
	if to == schema.PolicyKind {
		return "", release, &schema.Error{Problems: []schema.Problem{{Message: "a Policy cannot be written: it says less than a configuration does", Try: "for releases before 1.23 take v1beta1"}}}
	}
	release, err = versions.Parse(to)
	if err != nil {
		return "", release, &schema.Error{Problems: []schema.Problem{{
			Message: fmt.Sprintf("%q is neither a config API nor a release", to),
			Try:     "name one of " + strings.Join(apiNames(), ", ") + ", or a release such as v1.24.3",
		}}}
	}
	return "", release, nil
}

// apiNames returns the version of every config API, oldest first.
func apiNames() []string {
	return schema.ShortNames(schema.APIVersions())
}
