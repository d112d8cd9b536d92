package build

import (
	"context"
	"fmt"
	goversion "go/version"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// NewestGo is the value of Options.Go for the newest available stable Go version.
const NewestGo = "newest"

var (
	goMinor  = regexp.MustCompile(`^1\.[0-9]{1,4}$`)
	goStable = regexp.MustCompile(`^1\.[0-9]{1,4}\.[0-9]{1,4}$`)
)

// minorOf returns a Go version's minor: "1.18" for "1.18.10".
func minorOf(version string) string { return strings.TrimPrefix(goversion.Lang("go"+version), "go") }

// CheckGo refuses a non-empty Options.Go that is not NewestGo, a Go minor or a Go version.
func CheckGo(value string) error {
	if value == "" || value == NewestGo || goMinor.MatchString(value) || goVersion.MatchString(value) {
		return nil
	}
	return problem.Invalidf("",
		"invalid --go %q: must be %s, a version of Go such as 1.26.8, or a minor such as 1.26", value, NewestGo)
}

// GoIncludes reports whether a value of Options.Go is open, NewestGo or a minor, and includes a Go
// version.
func GoIncludes(value, version string) bool {
	return value == NewestGo || goMinor.MatchString(value) && minorOf(version) == value
}

// choose sets the Go version from Options.Go, which compiles instead of the version that a release
// names. directive is the go line in the release's go.mod.
func (c *toolchains) choose(ctx context.Context, asked, directive string) error {
	if asked == "" {
		return nil
	}
	if err := CheckGo(asked); err != nil {
		return err
	}
	if asked != NewestGo && !goMinor.MatchString(asked) {
		c.chosen = asked
		return tooOld(asked, directive)
	}
	if asked != NewestGo {
		if err := tooOld(asked+".999", directive); err != nil {
			return err
		}
	}
	return c.step("find the newest Go", func() error {
		candidates, err := c.stable(ctx, asked)
		if err != nil {
			return err
		}
		failed := problem.Invalidf("specify a version that GOPROXY serves, such as 1.26.8",
			"--go %s: the module proxy lists no such version of Go", asked)
		for _, version := range candidates[:min(len(candidates), maxPatchDownloads)] {
			if failed = tooOld(version, directive); failed != nil {
				return failed
			}
			if failed = c.fetch(ctx, version); failed == nil {
				c.chosen = version
				return nil
			}
			if ctx.Err() != nil {
				return failed
			}
		}
		return failed
	})
}

// stable returns the Go versions for NewestGo or a minor, newest first. Without a module proxy it
// is at most the user's own.
func (c *toolchains) stable(ctx context.Context, asked string) ([]string, error) {
	golang, err := c.goTool.find(ctx)
	if err != nil {
		return nil, err
	}
	var listed []string
	answers, err := c.list(ctx, "find the newest Go", "-versions", toolchainModule)
	if ctx.Err() != nil {
		return nil, err
	}
	for _, answer := range answers {
		listed = append(listed, answer.Versions...)
	}
	return stableVersions(asked, golang.version, listed), nil
}

// stableVersions returns the stable Go versions among the local one and the listed versions of
// toolchainModule for this machine, newest first.
func stableVersions(asked, local string, listed []string) []string {
	found := []string{local}
	for _, version := range listed {
		if golang, ok := goOfToolchain(version); ok {
			found = append(found, golang)
		}
	}
	found = slices.DeleteFunc(found, func(version string) bool {
		return !goStable.MatchString(version) || asked != NewestGo && minorOf(version) != asked
	})
	slices.SortFunc(found, func(a, b string) int { return goversion.Compare("go"+b, "go"+a) })
	return slices.Compact(found)
}

// tooOld refuses a Go version older than a release's go line.
func tooOld(version, directive string) error {
	if directive == "" || goversion.Compare("go"+version, "go"+directive) >= 0 {
		return nil
	}
	return problem.Invalidf("remove --go to compile with the version that the release names, or specify a newer one",
		"--go %s: the release requires Go %s or later", strings.TrimSuffix(version, ".999"), directive)
}

// adapt returns a source that a Go version other than the named one compiles, with the required
// changes. GODEBUG settings keep the defaults of the source's go line, also if a plugin requires a
// newer language and the go command raises the generated module's line.
func (c *toolchains) adapt(s source) source {
	if c.chosen == "" {
		return s
	}
	hasDefault := slices.ContainsFunc(s.Godebug, func(v string) bool { return strings.HasPrefix(v, "default=") })
	// Go 1.23 is the first that knows the directive.
	if !hasDefault && s.GoDirective != "" && goversion.Compare("go"+c.chosen, "go1.23") >= 0 {
		s.Godebug = append([]string{"default=go" + minorOf(s.GoDirective)}, s.Godebug...)
	}
	for _, u := range updates {
		s = u.apply(s, c.chosen)
	}
	return s
}

// moduleUpdate is a module that compiles but does not work with newer Go versions, and its first
// version that does.
type moduleUpdate struct {
	path, version string
	// since is the first minor of Go with which older versions fail.
	since string
	// sums are the lines of the version in go.sum.
	sums string
}

// updates lists the kube-scheduler modules in versions/releases.txt that newer Go versions break.
var updates = []moduleUpdate{
	// reflect2 up to v1.0.1 calls runtime.mapiterinit with the signature before Go 1.18, and crashes
	// when a map is encoded (github.com/modern-go/reflect2, go_above_118.go).
	{
		path: "github.com/modern-go/reflect2", version: "v1.0.2", since: "1.18",
		sums: "github.com/modern-go/reflect2 v1.0.2 h1:xBagoLtFs94CBntxluKeaWgTMpvLxC4ur3nMaC9Gz0M=\n" +
			"github.com/modern-go/reflect2 v1.0.2/go.mod h1:yWuevngMOJpCy52FWWMvUC8ws7m/LJsjYzDa0/r8luk=\n",
	},
}

func (u moduleUpdate) apply(s source, golang string) source {
	older := func(version string) bool { return semver.Compare(version, u.version) < 0 }
	if goversion.Compare("go"+golang, "go"+u.since) < 0 {
		return s
	}
	changed := false
	s.Pins = slices.Clone(s.Pins)
	for i, p := range s.Pins {
		if p.Path == u.path && older(p.NewVersion) {
			s.Pins[i].NewPath, s.Pins[i].NewVersion = u.path, u.version
			changed = true
		}
	}
	if changed {
		s.GoSum += u.sums
		s.Updated = append(slices.Clone(s.Updated), ModuleVersion{u.path, u.version})
	}
	return s
}

// chosenWarnings returns the deviations from a release that a Go version causes: other modules, and
// settings of GODEBUG that the version no longer has.
func (c *toolchains) chosenWarnings(s source) []string {
	if c.chosen == "" {
		return nil
	}
	var warnings []string
	for _, m := range s.Updated {
		warnings = append(warnings,
			fmt.Sprintf("using %s %s, because the version of the release does not work with Go %s", m.Path, m.Version, c.chosen))
	}
	if lost := lostSettings(debugVersion(s), c.chosen); len(lost) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"Go %s no longer has the former behavior that GODEBUG %s selects for this release; Go %s has it",
			c.chosen, strings.Join(lost, ", "), lastWith))
	}
	return warnings
}

// debugVersion returns the Go version whose GODEBUG defaults a source has.
func debugVersion(s source) string {
	for _, setting := range s.Godebug {
		if version, found := strings.CutPrefix(setting, "default=go"); found {
			return version
		}
	}
	return s.GoDirective
}

// removedSettings lists the GODEBUG settings that Go 1.27 removed, and whose former behavior
// Kubernetes programs can observe, by the Go minor that changed their default (go.dev/doc/godebug).
var removedSettings = []struct{ name, changed string }{
	{"tls10server", "1.22"}, {"tlsrsakex", "1.22"}, {"tlsunsafeekm", "1.22"},
	{"tls3des", "1.23"}, {"asynctimerchan", "1.23"}, {"x509keypairleaf", "1.23"},
}

// removedIn is the first minor of Go without removedSettings, and lastWith the minor before it.
const (
	removedIn = "1.27"
	lastWith  = "1.26"
)

// lostSettings returns the GODEBUG settings that have their former values by a Go version's
// defaults, and that the compiler's version no longer has.
func lostSettings(defaults, golang string) []string {
	var lost []string
	for _, s := range removedSettings {
		if goversion.Compare("go"+golang, "go"+removedIn) >= 0 && goversion.Compare("go"+defaults, "go"+s.changed) < 0 {
			lost = append(lost, s.name)
		}
	}
	return lost
}
