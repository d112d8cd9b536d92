package profiles

import (
	"errors"

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
	Notes []Note
}

// Convert carries a document to another config API with its meaning: upwards or
// downwards. What is wrong in the source, and what cannot be carried unless
// Lossy, is an [*Error] with every problem's line and column.
func Convert(r ConvertRequest) (*Converted, error) {
	return nil, errors.New("convert scheduler configuration: not there yet")
}

// Target reads what a person names as the target of a conversion: a config API
// ("v1beta3", "kubescheduler.config.k8s.io/v1beta3") or a release ("v1.24.3").
// The other of the two results is then zero.
func Target(to string) (api string, release versions.Release, err error) {
	return "", versions.Release{}, errors.New("not there yet")
}
