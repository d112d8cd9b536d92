package build

import (
	"fmt"
	goversion "go/version"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// stripped are the flags for small binaries that do not depend on the build's directory.
const stripped = "-s -w -buildid="

// stamp is the data that a binary of Kubernetes reports about its source, in addition to the
// release.
type stamp struct {
	// commit and treeState are the values that hack/lib/version.sh sets.
	commit, treeState string
	// date is the build date: the source's date, for reproducible builds.
	date string
}

// moduleStamp returns the stamp of a release built from its module, which does not contain its
// commit.
func moduleStamp(date string) stamp {
	return stamp{commit: "unknown", treeState: "archive", date: date}
}

// linkFlags returns the -ldflags for Kubernetes programs: the six variables of hack/lib/version.sh
// for each package that has them. Since 1.31 the feature gates' defaults depend on gitVersion, so
// it is the exact tag.
func linkFlags(release versions.Release, rules versions.Rules, s stamp) string {
	values := [][2]string{
		{"gitVersion", release.String()},
		{"gitMajor", fmt.Sprint(release.Major)},
		{"gitMinor", fmt.Sprint(release.Minor)},
		{"gitCommit", s.commit},
		{"gitTreeState", s.treeState},
		{"buildDate", s.date},
	}
	flags := []string{stripped}
	for _, pkg := range rules.VersionPackages {
		for _, v := range values {
			if v[1] != "" {
				flags = append(flags, fmt.Sprintf("-X %s.%s=%s", pkg, v[0], v[1]))
			}
		}
	}
	return strings.Join(flags, " ")
}

// buildTags returns the -tags value for Kubernetes programs.
func buildTags(rules versions.Rules) string { return strings.Join(rules.BuildTags, ",") }

// stampsVersionControl reports whether a Go version supports the flag -buildvcs.
func stampsVersionControl(goVersion string) bool {
	return goversion.Compare("go"+goVersion, "go1.18") >= 0
}
