package build

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build/goversion"
)

// lastPatch is the last patch of the minors of Go that get no more of them
// (go.dev/doc/devel/release), the first to try in place of another patch.
func lastPatch(minor string) string {
	return map[string]string{
		"1.15": "1.15.15", "1.16": "1.16.15", "1.17": "1.17.13", "1.18": "1.18.10", "1.19": "1.19.13",
		"1.20": "1.20.14", "1.21": "1.21.13", "1.22": "1.22.12", "1.23": "1.23.12",
	}[minor]
}

// The bounds of the search for another patch: how many after the wanted one are
// asked for where the last one is not known, and how many may be downloaded.
const (
	patchesAsked = 6
	patchesTried = 4
)

// toolchain is the version of Go that stands for the one a release names.
type toolchain struct {
	Named string `json:"named"`
	Used  string `json:"used"`
}

// warning says that another version is used, or is empty.
func (t toolchain) warning(of string) string {
	if t.Named == t.Used {
		return ""
	}
	return fmt.Sprintf("Go %s, which %s names, does not download; Go %s, the newest patch of the same minor that does, is used", t.Named, of, t.Used)
}

func (j *job) toolchainPath(named string) string {
	return j.cache.fact("go", named+"-"+Host().OS+"-"+Host().Arch)
}

// knownToolchain returns the version used last time for a named one; without any
// knowledge it is the named one itself.
func (j *job) knownToolchain(named string) toolchain {
	var known toolchain
	if found, err := readJSON(j.toolchainPath(named), &known); err != nil || !found || known.Named != named {
		return toolchain{Named: named, Used: named}
	}
	return known
}

// findToolchain has the go command fetch the named version of Go, or else the
// newest patch of the same minor that can be had, and remembers which it was.
func (j *job) findToolchain(ctx context.Context, named string) (toolchain, error) {
	known := j.knownToolchain(named)
	for _, version := range slices.Compact([]string{known.Used, named}) {
		failed := j.fetchToolchain(ctx, version)
		if failed == nil {
			return j.rememberToolchain(toolchain{Named: named, Used: version})
		}
		if ctx.Err() != nil || version == named {
			return j.otherPatch(ctx, named, failed)
		}
	}
	return toolchain{}, nil
}

func (j *job) rememberToolchain(t toolchain) (toolchain, error) {
	if err := writeJSON(j.toolchainPath(t.Named), t); err != nil {
		return toolchain{}, fmt.Errorf("remember Go %s: %w", t.Used, err)
	}
	return t, nil
}

// fetchToolchain runs a version of Go, which downloads it if need be.
func (j *job) fetchToolchain(ctx context.Context, version string) error {
	step := "fetch Go " + version
	golang, err := j.findGo(ctx)
	if err != nil {
		return err
	}
	out, err := j.run(ctx, golang.in(j.space.tmp, []string{"GOTOOLCHAIN=go" + version}, "version"))
	if err != nil {
		return failure(ctx, step, out.tail, err)
	}
	if !strings.HasPrefix(string(out.stdout), "go version go"+version+" ") {
		return &Error{
			Step: step, Cause: CauseToolchain,
			Message: fmt.Sprintf("asked for Go %s, the go command answers %q", version, strings.TrimSpace(string(out.stdout))),
		}
	}
	return nil
}

// otherPatch looks for the newest patch of the same minor of Go; failed is why
// the named one cannot be had, and what is returned when there is none.
func (j *job) otherPatch(ctx context.Context, named string, failed error) (toolchain, error) {
	if ctx.Err() != nil {
		return toolchain{}, failed
	}
	tried := 0
	for _, version := range j.patches(ctx, named) {
		if tried++; tried > patchesTried {
			break
		}
		if j.fetchToolchain(ctx, version) == nil {
			return j.rememberToolchain(toolchain{Named: named, Used: version})
		}
		if ctx.Err() != nil {
			break
		}
	}
	return toolchain{}, failed
}

// patches returns the patches of a version's minor that seem to exist, newest
// first. The list that a module proxy gives is not complete, so some are asked
// for one by one.
func (j *job) patches(ctx context.Context, named string) []string {
	const module = "golang.org/toolchain"
	minor, step := goversion.Minor(named), "look for another patch of Go "+named
	found := map[string]bool{}
	if golang, err := j.findGo(ctx); err == nil && goversion.Minor(golang.version) == minor {
		found[golang.version] = true
	}
	suffix := "." + Host().OS + "-" + Host().Arch
	pattern := regexp.MustCompile(`^v0\.0\.1-go(` + regexp.QuoteMeta(minor) + `(?:\.[0-9]+)?)` + regexp.QuoteMeta(suffix) + `$`)
	keep := func(version string) {
		if match := pattern.FindStringSubmatch(version); match != nil && match[1] != named {
			found[match[1]] = true
		}
	}
	if answers, err := j.list(ctx, step, "-versions", module); err == nil {
		for _, answer := range answers {
			for _, version := range answer.Versions {
				keep(version)
			}
		}
	}
	var asked []string
	for _, version := range unlisted(named) {
		asked = append(asked, module+"@v0.0.1-go"+version+suffix)
	}
	if answers, err := j.list(ctx, step, asked...); err == nil {
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
	slices.SortFunc(versions, func(a, b string) int { return goversion.Compare(b, a) })
	return versions
}

// unlisted returns the patches worth asking for by name: the last of a minor
// that has ended, or else those that follow the named one.
func unlisted(named string) []string {
	minor := goversion.Minor(named)
	if last := lastPatch(minor); last != "" {
		return []string{last}
	}
	patch, err := strconv.Atoi(strings.TrimPrefix(named, minor+"."))
	if err != nil {
		patch = 0
	}
	var versions []string
	for next := patch + patchesAsked; next > patch; next-- {
		versions = append(versions, fmt.Sprintf("%s.%d", minor, next))
	}
	return versions
}
