package build

import (
	"context"
	"errors"
	"fmt"
	goversion "go/version"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lastPatch returns the last patch of a Go minor that gets no more patches
// (go.dev/doc/devel/release). It is the first to try instead of another patch.
func lastPatch(minor string) string {
	return map[string]string{
		"1.15": "1.15.15", "1.16": "1.16.15", "1.17": "1.17.13", "1.18": "1.18.10", "1.19": "1.19.13",
		"1.20": "1.20.14", "1.21": "1.21.13", "1.22": "1.22.12", "1.23": "1.23.12",
	}[minor]
}

// The limits of the search for another patch: how many after the named one to look up if the last
// one is not known, and how many to download.
const (
	maxPatchLookups   = 6
	maxPatchDownloads = 4
)

// toolchain is the Go version that a release names, and the version that is used for it.
type toolchain struct {
	Named string `json:"named"`
	Used  string `json:"used"`
	// chosen reports whether the user chose Used.
	chosen bool
}

func (t toolchain) warning(of string) string {
	if t.Named == t.Used || t.chosen {
		return ""
	}
	return fmt.Sprintf("Go %s, which %s names, does not download; using Go %s, the newest patch of its minor that does",
		t.Named, of, t.Used)
}

// toolchainModule is the module with the Go versions, one for each platform.
const toolchainModule = "golang.org/toolchain"

// toolchainVersion returns toolchainModule's version for a Go version.
func toolchainVersion(version string, p Platform) string {
	return "v0.0.1-go" + version + "." + p.OS + "-" + p.Arch
}

// goOfToolchain returns the Go version for a version of toolchainModule, if it is one for this
// machine.
func goOfToolchain(version string) (golang string, ok bool) {
	golang, isGo := strings.CutPrefix(version, "v0.0.1-go")
	golang, isHost := strings.CutSuffix(golang, "."+Host().OS+"-"+Host().Arch)
	return golang, isGo && isHost
}

// IsGoProgram reports whether a file of toolchainModule is to be executable. In the module, no file
// is: the go command sets the modes when it unpacks one (cmd/go/internal/toolchain/select.go). name
// is a slash-separated path in the module.
func IsGoProgram(name string) bool {
	return strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "pkg/tool/")
}

// toolchains downloads Go versions and remembers which ones it used.
type toolchains struct {
	*goTool
	// chosen is the Go version that the user chose. If it is empty, the version that a release names
	// is used.
	chosen string
}

func (c *toolchains) path(named string) string {
	return c.cache.fact("go", named+"-"+Host().OS+"-"+Host().Arch)
}

// recall returns the version that was used last time for a named one, by default the named one.
func (c *toolchains) recall(named string) toolchain {
	if c.chosen != "" {
		return toolchain{Named: named, Used: c.chosen, chosen: true}
	}
	var known toolchain
	if found, err := readJSON(c.path(named), &known); err != nil || !found || known.Named != named {
		return toolchain{Named: named, Used: named}
	}
	return known
}

// find downloads the named Go version, or else the newest patch of its minor that downloads, and
// remembers which one it was.
func (c *toolchains) find(ctx context.Context, named string) (toolchain, error) {
	known := c.recall(named)
	if known.chosen {
		return known, c.fetch(ctx, known.Used)
	}
	for _, version := range slices.Compact([]string{known.Used, named}) {
		failed := c.fetch(ctx, version)
		if failed == nil {
			return c.remember(toolchain{Named: named, Used: version})
		}
		if ctx.Err() != nil || version == named {
			return c.otherPatch(ctx, named, failed)
		}
	}
	return toolchain{}, nil
}

func (c *toolchains) remember(t toolchain) (toolchain, error) {
	if err := writeJSON(c.path(t.Named), t); err != nil {
		return toolchain{}, fmt.Errorf("remember Go %s: %w", t.Used, err)
	}
	return t, nil
}

// fetch runs a Go version, which downloads it if necessary.
func (c *toolchains) fetch(ctx context.Context, version string) error {
	step := "download Go " + version
	golang, err := c.goTool.find(ctx)
	if err != nil {
		return err
	}
	space, err := c.work.get(ctx)
	if err != nil {
		return err
	}
	out, err := c.run(ctx, golang.in(space.tmp, []string{"GOTOOLCHAIN=go" + version}, "version"))
	if err != nil {
		return failure(ctx, step, out.tail, err)
	}
	if !strings.HasPrefix(string(out.stdout), "go version go"+version+" ") {
		return &Error{
			Step: step, Cause: CauseToolchain,
			Message: fmt.Sprintf("expected Go %s, got %q from the go command", version,
				strings.TrimSpace(string(out.stdout))),
		}
	}
	return nil
}

// otherPatch finds the newest available patch of the same Go minor. failed is the failure to
// download the named one, which is returned if there is none.
func (c *toolchains) otherPatch(ctx context.Context, named string, failed error) (toolchain, error) {
	if ctx.Err() != nil || lacksLibrary(failed) {
		return toolchain{}, failed
	}
	tried := 0
	for _, version := range c.patches(ctx, named) {
		if tried++; tried > maxPatchDownloads {
			break
		}
		other := c.fetch(ctx, version)
		if other == nil {
			return c.remember(toolchain{Named: named, Used: version})
		}
		if lacksLibrary(other) {
			return toolchain{}, other
		}
		if ctx.Err() != nil {
			break
		}
	}
	return toolchain{}, failed
}

// lacksLibrary reports whether a Go version does not run on this machine: other patches of its
// minor do not either.
func lacksLibrary(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Cause == CauseNoLibrary
}

// patches returns the patches in a version's minor that seem to exist, newest first. A module
// proxy's list is not complete, so some are looked up one by one.
func (c *toolchains) patches(ctx context.Context, named string) []string {
	minor, step := minorOf(named), "find another patch of Go "+named
	found := map[string]bool{}
	if golang, err := c.goTool.find(ctx); err == nil && minorOf(golang.version) == minor {
		found[golang.version] = true
	}
	patch := regexp.MustCompile(`^` + regexp.QuoteMeta(minor) + `(\.[0-9]+)?$`)
	keep := func(version string) {
		if golang, ok := goOfToolchain(version); ok && patch.MatchString(golang) && golang != named {
			found[golang] = true
		}
	}
	if answers, err := c.list(ctx, step, "-versions", toolchainModule); err == nil {
		for _, answer := range answers {
			for _, version := range answer.Versions {
				keep(version)
			}
		}
	}
	var asked []string
	for _, version := range unlisted(named) {
		asked = append(asked, toolchainModule+"@"+toolchainVersion(version, Host()))
	}
	if answers, err := c.list(ctx, step, asked...); err == nil {
		for _, answer := range answers {
			if answer.Error == nil {
				keep(answer.Version)
			}
		}
	}
	var versions []string
	for version := range found {
		versions = append(versions, version)
	}
	slices.SortFunc(versions, func(a, b string) int { return goversion.Compare("go"+b, "go"+a) })
	return versions
}

// unlisted returns the patches to look up by name: the last one of a minor that has ended, or else
// those that follow the named one.
func unlisted(named string) []string {
	minor := minorOf(named)
	if last := lastPatch(minor); last != "" {
		return []string{last}
	}
	patch, err := strconv.Atoi(strings.TrimPrefix(named, minor+"."))
	if err != nil {
		patch = 0
	}
	var versions []string
	for next := patch + maxPatchLookups; next > patch; next-- {
		versions = append(versions, fmt.Sprintf("%s.%d", minor, next))
	}
	return versions
}
