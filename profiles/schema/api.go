package schema

import (
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// API is one version of the config API, and how the releases that read it behave.
type API struct {
	// Name is the version, for example v1beta1.
	Name string
	// Set contains only this version's bit.
	Set APISet
	// MultiPoint is set if default plugins are enabled under plugins.multiPoint; otherwise each
	// extension point has its own defaults.
	MultiPoint bool
	// Duplicates is set if enabling a default plugin without disabling it enables it twice, which
	// the scheduler rejects (pkg/scheduler/apis/config/v1beta1/default_plugins.go).
	Duplicates bool
	// Ignored are the extension points that the decoder accepts and the defaulting silently drops
	// (mergePlugins in <api>/default_plugins.go).
	Ignored []string
	// Removed is the release that removed the config API, if no supported release reads it.
	Removed string
	// Minor is the minor release that reads it. If it is 0, any release does.
	Minor int
}

// Of returns the config API as read by a minor release.
func (a API) Of(minor int) API {
	a.Minor = minor
	return a
}

// readers returns the first and the last minor release that read the config API.
func (a API) readers() (first, last int) {
	for _, release := range versions.Releases() {
		if !slices.Contains(release.Rules().Accepted, a.GroupVersion()) {
			continue
		}
		first, last = release.Minor, max(last, release.Minor)
	}
	return first, last
}

// GroupVersion returns the value of apiVersion.
func (a API) GroupVersion() string { return ConfigGroup + "/" + a.Name }

// APISet is a set of config APIs.
type APISet uint8

// Sets of one config API.
const (
	InV1beta1 APISet = 1 << iota
	InV1beta2
	inV1beta3
	InV1

	inEvery = InV1beta1 | InV1beta2 | inV1beta3 | InV1
)

// Has reports whether the sets overlap.
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

// APINamed returns a config API by its version, for example v1beta3.
func APINamed(name string) (API, bool) {
	all := APIs()
	i := slices.IndexFunc(all, func(a API) bool { return a.Name == name })
	if i < 0 {
		return API{}, false
	}
	return all[i], true
}

// APIVersions returns the group and version of every config API, oldest first.
func APIVersions() []string {
	var all []string
	for _, a := range APIs() {
		all = append(all, a.GroupVersion())
	}
	return all
}

// SourceMinor returns the minor release whose defaults apply to a document of the config API: the
// target if it reads the API, otherwise the closest one that does.
func (a API) SourceMinor(target int) int {
	first, last := a.readers()
	return min(max(target, first), last)
}

// ShortNames removes the group from config APIs.
func ShortNames(all []string) []string {
	var names []string
	for _, version := range all {
		names = append(names, strings.TrimPrefix(version, ConfigGroup+"/"))
	}
	return names
}
