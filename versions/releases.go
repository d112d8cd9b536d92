package versions

import (
	_ "embed"
	"strings"
)

//go:embed releases.txt
var releasesText string

// Releases returns the releases that are built and tested (releases.txt), one for each supported
// minor release, newest first.
func Releases() []Release {
	var list []Release
	for line := range strings.Lines(releasesText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if release, err := FromServer(line); err == nil {
			list = append(list, release)
		}
	}
	return list
}

// TestedPatch returns the tested release of a branch that names a minor release: "v1.24", "1.24" or
// "release-1.24". It reports false for every other branch.
func TestedPatch(branch string) (Release, bool) {
	minor := strings.TrimPrefix(strings.TrimPrefix(branch, "release-"), "v")
	for _, release := range Releases() {
		if release.MinorString() == minor {
			return release, true
		}
	}
	return Release{}, false
}

// newestOf returns the tested release of the minor release in text ("1.24", "v1.24.x",
// "release-1.24"), or "".
func newestOf(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "release-"), "v")
	for _, release := range Releases() {
		rest, found := strings.CutPrefix(text, release.MinorString())
		if found && (rest == "" || rest[0] == '.') {
			return release.String()
		}
	}
	return ""
}
