package schema

import (
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// API is one config API and how the release that reads it treats what it says.
type API struct {
	// Name is the version: v1beta1.
	Name string
	// Set is the one bit that stands for it in an apiSet.
	Set APISet
	// MultiPoint says that the defaults are enabled under plugins.multiPoint and
	// spread from there; before, each extension point has its own.
	MultiPoint bool
	// Duplicates says that enabling a default plugin again without disabling it
	// enables it twice, which the scheduler refuses
	// (pkg/scheduler/apis/config/v1beta1/default_plugins.go).
	Duplicates bool
	// Ignored are the extension points that the decoder accepts and the defaulting
	// then drops without a word (mergePlugins in <api>/default_plugins.go).
	Ignored []string
	// Minor is the minor that reads it; 0 is any.
	Minor int
}

// Of returns the config API as one minor reads it.
func (a API) Of(minor int) API {
	a.Minor = minor
	return a
}

// readers returns the first and the last minor that read the config API.
func (a API) readers() (first, last int) {
	for _, release := range versions.Releases() {
		rules, _, err := versions.Select(release)
		if err != nil || !slices.Contains(rules.Accepted, a.GroupVersion()) {
			continue
		}
		first, last = release.Minor, max(last, release.Minor)
	}
	return first, last
}

// GroupVersion returns group and version, as they stand in apiVersion.
func (a API) GroupVersion() string { return ConfigGroup + "/" + a.Name }

// APISet is a set of config APIs.
type APISet uint8

const (
	InV1beta1 APISet = 1 << iota
	InV1beta2
	inV1beta3
	InV1

	inEvery = InV1beta1 | InV1beta2 | inV1beta3 | InV1
)

// Has says whether the set holds one config API at least of another.
func (s APISet) Has(other APISet) bool { return s&other != 0 }

// APIs lists the config APIs, oldest first.
func APIs() []API {
	return []API{
		{Name: "v1beta1", Set: InV1beta1, Duplicates: true},
		{Name: "v1beta2", Set: InV1beta2, Ignored: []string{"multiPoint", "preEnqueue"}},
		{Name: "v1beta3", Set: inV1beta3, MultiPoint: true, Ignored: []string{"preEnqueue"}},
		{Name: "v1", Set: InV1, MultiPoint: true},
	}
}

// APINamed returns the config API of a version such as v1beta3.
func APINamed(name string) (API, bool) {
	all := APIs()
	i := slices.IndexFunc(all, func(a API) bool { return a.Name == name })
	if i < 0 {
		return API{}, false
	}
	return all[i], true
}

// APIVersions returns group and version of every config API, oldest first.
func APIVersions() []string {
	var all []string
	for _, a := range APIs() {
		all = append(all, a.GroupVersion())
	}
	return all
}

// SourceMinor returns the minor whose defaults a document of the config API
// means: the target's where it reads the API too, else the one nearest to it.
func (a API) SourceMinor(target int) int {
	first, last := a.readers()
	return min(max(target, first), last)
}

// ShortNames takes the group off config APIs.
func ShortNames(all []string) []string {
	var names []string
	for _, version := range all {
		names = append(names, strings.TrimPrefix(version, ConfigGroup+"/"))
	}
	return names
}
