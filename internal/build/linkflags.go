package build

import (
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build/goversion"
	"github.com/pmk-sched/pmk-sched/versions"
)

// stripped makes binaries that are small and do not depend on where they were linked.
const stripped = "-s -w -buildid="

// stamp is what a binary of Kubernetes says of its own source, besides the release.
type stamp struct {
	// commit and treeState are as hack/lib/version.sh sets them.
	commit, treeState string
	// date is the build date; that of the source, so that it repeats.
	date string
}

// moduleStamp is the stamp of a release built from its module, which does not
// say which commit it was made from.
func moduleStamp(date string) stamp {
	return stamp{commit: "unknown", treeState: "archive", date: date}
}

// linkFlags returns the -ldflags for programs of Kubernetes: the six variables
// of hack/lib/version.sh for each of the packages that have them. From 1.31
// gitVersion chooses the defaults of feature gates, so it is the exact tag.
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

// buildTags returns the value of -tags for programs of Kubernetes.
func buildTags(rules versions.Rules) string { return strings.Join(rules.BuildTags, ",") }

// stampsVersionControl reports whether a version of Go knows -buildvcs.
func stampsVersionControl(goVersion string) bool { return goversion.Compare(goVersion, "1.18") >= 0 }
