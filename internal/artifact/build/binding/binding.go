// Package binding selects the source of a scheduler with portable plugins: the files of
// scheduler/adapter that a release takes, and the structs of it that each plugin embeds.
package binding

import (
	"strconv"
	"strings"
)

// The minors of Kubernetes 1 that scheduler/adapter supports.
const (
	OldestMinor = 20
	NewestMinor = 37
)

// Files returns the names of Go files that are for a minor, without tests. x_from24.go is for 1.24
// and later, x_before24.go for earlier minors, x_from24_before30.go for 1.24 to 1.29.
func Files(minor int, names []string) []string {
	var selected []string
	for _, name := range names {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && isFor(minor, strings.TrimSuffix(name, ".go")) {
			selected = append(selected, name)
		}
	}
	return selected
}

// isFor evaluates the suffixes of a file name.
func isFor(minor int, name string) bool {
	for _, suffix := range strings.Split(name, "_")[1:] {
		if from, ok := bound(suffix, "from"); ok && minor < from {
			return false
		}
		if before, ok := bound(suffix, "before"); ok && minor >= before {
			return false
		}
	}
	return true
}

func bound(suffix, keyword string) (minor int, ok bool) {
	if !strings.HasPrefix(suffix, keyword) {
		return 0, false
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(suffix, keyword))
	return minor, err == nil
}

// otherRelease is the first line of a file that does not compile with the release in this project's go.mod.
const otherRelease = "//go:build ignore\n\n"

// Source returns the source of a file without the constraint that keeps it out of this project's build.
func Source(file []byte) []byte {
	return []byte(strings.TrimPrefix(string(file), otherRelease))
}
