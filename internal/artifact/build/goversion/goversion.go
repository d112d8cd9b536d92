// Package goversion compares Go versions such as "1.18.10".
package goversion

import (
	"strings"

	"golang.org/x/mod/semver"
)

// Oldest is the first release of Go whose command downloads another toolchain when GOTOOLCHAIN
// names it.
const Oldest = "1.21"

// Compare compares two Go versions. "1.18" equals "1.18.0", and a release candidate ("1.26rc1") is
// older than its release.
func Compare(a, b string) int { return semver.Compare(canonical(a), canonical(b)) }

// Minor returns a version's minor: "1.18" for "1.18.10".
func Minor(version string) string {
	return strings.TrimPrefix(semver.MajorMinor(canonical(version)), "v")
}

func canonical(version string) string {
	for _, pre := range []string{"rc", "beta"} {
		if number, rest, found := strings.Cut(version, pre); found {
			return "v" + number + ".0-" + pre + "." + rest
		}
	}
	return "v" + version
}
