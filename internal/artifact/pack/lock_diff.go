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

// maxModules is how many differences of modules are listed: another release has hundreds.
const maxModules = 10

// differences returns how a build differs from the lock, one line each, the causes before their effects. Binaries that differ without a cause
// are listed as such.
func (l *lock) differences(built *lock) []string {
	var list []string
	field := func(name, locked, got string) {
		if locked != got {
			list = append(list, fmt.Sprintf("%s: locked %s, got %s", name, cmp.Or(locked, "none"), cmp.Or(got, "none")))
		}
	}
	field("release", l.Release, built.Release)
	field("source", l.Source, built.Source)
	field("commit", l.Commit, built.Commit)
	field("go", l.Go, built.Go)
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

func comparePlugins(locked, built []lockedPlugin) []string {
	byName := func(plugins []lockedPlugin) map[string]lockedPlugin {
		m := map[string]lockedPlugin{}
		for _, p := range plugins {
			m[p.Name] = p
		}
		return m
	}
	return compare(byName(locked), byName(built), func(name string, a, b lockedPlugin) string {
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
	byPlatform := func(binaries []lockedBinary) map[string]string {
		m := map[string]string{}
		for _, b := range binaries {
			m[b.Platform] = b.SHA256
		}
		return m
	}
	return compare(byPlatform(locked), byPlatform(built), func(platform, a, b string) string {
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
	byPath := func(modules []string) map[string]string {
		m := map[string]string{}
		for _, line := range modules {
			path, version, _ := strings.Cut(line, " ")
			m[path] = version
		}
		return m
	}
	list := compare(byPath(locked), byPath(built), func(path, a, b string) string {
		return fmt.Sprintf("module %s: locked %s, got %s", path, cmp.Or(a, "none"), cmp.Or(b, "none"))
	})
	if more := len(list) - maxModules; more > 0 {
		list = append(list[:maxModules], fmt.Sprintf("and %d more modules", more))
	}
	return list
}

// compare describes the entries that differ, by key.
func compare[V comparable](locked, built map[string]V, describe func(key string, locked, built V) string) []string {
	all := maps.Clone(locked)
	maps.Copy(all, built)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if a, b := locked[key], built[key]; a != b {
			list = append(list, describe(key, a, b))
		}
	}
	return list
}
