package profiles

import (
	"slices"

	"github.com/pmk-sched/pmk-sched/versions"
)

// api is one config API and how the release that reads it treats what it says.
type api struct {
	// name is the version: v1beta1.
	name string
	// set is the one bit that stands for it in an apiSet.
	set apiSet
	// multiPoint says that the defaults are enabled under plugins.multiPoint and
	// spread from there; before, each extension point has its own.
	multiPoint bool
	// duplicates says that enabling a default plugin again without disabling it
	// enables it twice, which the scheduler refuses
	// (pkg/scheduler/apis/config/v1beta1/default_plugins.go).
	duplicates bool
	// ignored are the extension points that the decoder accepts and the defaulting
	// then drops without a word (mergePlugins in <api>/default_plugins.go).
	ignored []string
	// minor is the minor that reads it; 0 is any.
	minor int
}

// of returns the config API as one minor reads it.
func (a api) of(minor int) api {
	a.minor = minor
	return a
}

// readers returns the first and the last minor that read the config API.
func (a api) readers() (first, last int) {
	for _, release := range versions.Releases() {
		rules, _, err := versions.Select(release)
		if err != nil || !slices.Contains(rules.Accepted, a.version()) {
			continue
		}
		first, last = release.Minor, max(last, release.Minor)
	}
	return first, last
}

// version returns group and version, as they stand in apiVersion.
func (a api) version() string { return configGroup + "/" + a.name }

// apiSet is a set of config APIs.
type apiSet uint8

const (
	inV1beta1 apiSet = 1 << iota
	inV1beta2
	inV1beta3
	inV1

	inEvery = inV1beta1 | inV1beta2 | inV1beta3 | inV1
)

// has says whether the set holds one config API at least of another.
func (s apiSet) has(other apiSet) bool { return s&other != 0 }

// apis lists the config APIs, oldest first.
func apis() []api {
	return []api{
		{name: "v1beta1", set: inV1beta1, duplicates: true},
		{name: "v1beta2", set: inV1beta2, ignored: []string{"multiPoint", "preEnqueue"}},
		{name: "v1beta3", set: inV1beta3, multiPoint: true, ignored: []string{"preEnqueue"}},
		{name: "v1", set: inV1, multiPoint: true},
	}
}

// apiNamed returns the config API of a version such as v1beta3.
func apiNamed(name string) (api, bool) {
	all := apis()
	i := slices.IndexFunc(all, func(a api) bool { return a.name == name })
	if i < 0 {
		return api{}, false
	}
	return all[i], true
}

// apiVersions returns group and version of every config API, oldest first.
func apiVersions() []string {
	var all []string
	for _, a := range apis() {
		all = append(all, a.version())
	}
	return all
}
