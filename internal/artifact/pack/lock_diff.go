package pack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LockedError is returned when a build differs from its lock.
type LockedError struct {
	File string
	// Differences has one line for each.
	Differences []string
}

// Error lists the differences.
func (e *LockedError) Error() string {
	return "the build differs from " + e.File + ":\n  " + strings.Join(e.Differences, "\n  ")
}

// Hint returns a suggestion for the user.
func (e *LockedError) Hint() string {
	return "if the change is wanted, write the file again with `pmk-sched build --lock`"
}

// CheckFailed reports that the build worked, and that it is not the locked one.
func (e *LockedError) CheckFailed() bool { return true }

// maxModules is the maximum number of listed module differences: another release has hundreds.
const maxModules = 10

// differences returns how a build differs from the lock, one line each, the causes before their
// effects. Binaries that differ without a cause are listed as such.
func (l *lock) differences(built *lock) []string {
	var list []string
	field := func(name, locked, got string) {
		if locked != got {
			list = append(list, fmt.Sprintf("%s: locked %s, got %s", name, cmp.Or(locked, "none"), cmp.Or(got, "none")))
		}
	}
	field("release", l.Release, built.Release)
	field("rules", l.Rules, built.Rules)
	field("source", l.Source, built.Source)
	field("commit", l.Commit, built.Commit)
	field("go", l.compiler(), built.compiler())
	if built.Base != "" { // only a program was built
		field("base", l.Base, built.Base)
	}
	list = append(list, comparePlugins(l.Plugins, built.Plugins)...)
	field("imports", strings.Join(l.Imports, ", "), strings.Join(built.Imports, ", "))
	list = append(list, compareModules(l.Modules, built.Modules)...)
	list = append(list, compareBinaries(l.Binaries, built.Binaries)...)
	if len(list) > 0 {
		field("pmk-sched", l.PMKSched, built.PMKSched)
	}
	return list
}

// compiler returns the Go version, and whether it was chosen.
func (l *lock) compiler() string {
	if l.GoChosen {
		return l.Go + " (--go)"
	}
	return l.Go
}

func comparePlugins(locked, built []lockedPlugin) []string {
	byName := func(p lockedPlugin) (string, lockedPlugin) { return p.Name, p }
	return compare(locked, built, byName, func(name string, a, b lockedPlugin) string {
		switch {
		case a.Name == "":
			return fmt.Sprintf("plugin %s (%s): not locked", name, b.Origin)
		case b.Name == "":
			return fmt.Sprintf("plugin %s (%s): locked, but not built", name, a.Origin)
		case a.Origin != b.Origin:
			return fmt.Sprintf("plugin %s: locked from %s, got it from %s", name, a.Origin, b.Origin)
		}
		return fmt.Sprintf("plugin %s (%s): its sources have changed", name, a.Origin)
	})
}

func compareBinaries(locked, built []lockedBinary) []string {
	byPlatform := func(b lockedBinary) (string, string) { return b.Platform, b.SHA256 }
	return compare(locked, built, byPlatform, func(platform, a, b string) string {
		switch {
		case a == "":
			return fmt.Sprintf("binary %s: not locked", platform)
		case b == "":
			return fmt.Sprintf("binary %s: locked, but not built", platform)
		}
		return fmt.Sprintf("binary %s: locked sha256 %s, got %s", platform, a, b)
	})
}

func compareModules(locked, built []string) []string {
	byPath := func(line string) (string, string) {
		path, version, _ := strings.Cut(line, " ")
		return path, version
	}
	list := compare(locked, built, byPath, func(path, a, b string) string {
		return fmt.Sprintf("module %s: locked %s, got %s", path, cmp.Or(a, "none"), cmp.Or(b, "none"))
	})
	if more := len(list) - maxModules; more > 0 {
		list = append(list[:maxModules], fmt.Sprintf("and %d more modules", more))
	}
	return list
}

// compare describes the entries that differ, by the key that split returns for each.
func compare[T any, V comparable](
	locked, built []T, split func(T) (key string, value V), describe func(key string, locked, built V) string,
) []string {
	byKey := func(entries []T) map[string]V {
		m := map[string]V{}
		for _, e := range entries {
			key, value := split(e)
			m[key] = value
		}
		return m
	}
	before, after := byKey(locked), byKey(built)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if a, b := before[key], after[key]; a != b {
			list = append(list, describe(key, a, b))
		}
	}
	return list
}
