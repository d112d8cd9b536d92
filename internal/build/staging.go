package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/versions"
)

// staged is what downloading the staging modules of a release came to.
type staged struct {
	// GoSum has the lines of go.sum of those that were downloaded.
	GoSum string `json:"goSum"`
	// Missing are those that cannot be had, as path@version. Not every
	// program needs every staging module.
	Missing []string `json:"missing,omitempty"`
}

func (s staged) warnings(release versions.Release) []string {
	var warnings []string
	for _, module := range s.Missing {
		warnings = append(warnings, fmt.Sprintf("%s does not download; %s was built without it", module, release))
	}
	return warnings
}

func (j *job) stagedPath(release versions.Release) string {
	return j.cache.fact("staging", release.String())
}

// knownStaging returns what was downloaded last time.
func (j *job) knownStaging(release versions.Release) (staged, bool) {
	var known staged
	found, err := readJSON(j.stagedPath(release), &known)
	return known, err == nil && found
}

// fetchStaging downloads the staging modules of a release, several at a time. It
// fails only if the module proxy cannot be asked.
func (j *job) fetchStaging(ctx context.Context, release versions.Release, s source) (staged, error) {
	step := "download the staging modules of " + release.String()
	var got staged
	if len(s.Staging) > 0 {
		answers, err := j.download(ctx, step, atVersion(s.Staging, release)...)
		if err != nil {
			return staged{}, err
		}
		for _, answer := range answers {
			if answer.Error == "" {
				got.GoSum += sumLines(answer)
				continue
			}
			failed := diagnose(step, redact(answer.Error), errors.New("go mod download failed"))
			if !missing(failed) {
				return staged{}, failed
			}
			got.Missing = append(got.Missing, answer.String())
		}
	}
	slices.Sort(got.Missing)
	if err := writeJSON(j.stagedPath(release), got); err != nil {
		return staged{}, storage(ctx, step, err)
	}
	return got, nil
}

// missing reports whether a module cannot be had, as against the module proxy
// not answering or answering with something else than others were given.
func missing(e *Error) bool {
	return e.Cause == CauseModuleMissing || e.Cause == CauseUnknown
}

func atVersion(paths []string, release versions.Release) []string {
	var modules []string
	for _, path := range paths {
		version := release.Staging()
		if path == kubernetes {
			version = release.String()
		}
		modules = append(modules, path+"@"+version)
	}
	return modules
}

// The bounds of the search for a patch that can be built instead.
const (
	nearbyPatches = 6
	nearbyModules = 3
	nearbyTime    = 15 * time.Second
)

// nearestPatch looks for the patch of the same minor, nearest to release, that
// has k8s.io/kubernetes and the given staging modules. It gives up early rather
// than have somebody wait for a hint.
func (j *job) nearestPatch(ctx context.Context, release versions.Release, paths []string) (versions.Release, bool) {
	ctx, cancel := context.WithTimeout(ctx, nearbyTime)
	defer cancel()
	const step = "look for another patch"
	if len(paths) > nearbyModules {
		paths = paths[:nearbyModules]
	}
	near := nearby(release)
	var asked []string
	for _, candidate := range near {
		asked = append(asked, atVersion(append([]string{kubernetes}, paths...), candidate)...)
	}
	answers, err := j.list(ctx, step, asked...)
	if err != nil {
		return versions.Release{}, false
	}
	lacking := map[string]bool{}
	for _, answer := range answers {
		lacking[answer.Path+"@"+answer.Version] = answer.Error != nil
	}
	lacks := func(module string) bool { bad, answered := lacking[module]; return bad || !answered }
	for _, candidate := range near {
		modules := atVersion(paths, candidate)
		if lacks(kubernetes+"@"+candidate.String()) || slices.ContainsFunc(modules, lacks) {
			continue
		}
		if len(modules) == 0 || j.downloads(ctx, step, modules) {
			return candidate, true
		}
	}
	return versions.Release{}, false
}

// downloads reports whether all of the modules can really be had: a proxy may
// know a version without having its source.
func (j *job) downloads(ctx context.Context, step string, modules []string) bool {
	answers, err := j.download(ctx, step, modules...)
	return err == nil && !slices.ContainsFunc(answers, func(d download) bool { return d.Error != "" })
}

// nearby returns patches of the same minor, nearest first and older before newer,
// and last the one that is built and tested.
func nearby(release versions.Release) []versions.Release {
	var near []versions.Release
	for distance := 1; len(near) < nearbyPatches; distance++ {
		for _, patch := range []int{release.Patch - distance, release.Patch + distance} {
			if patch >= 0 {
				near = append(near, versions.Release{Major: release.Major, Minor: release.Minor, Patch: patch})
			}
		}
	}
	for _, tested := range versions.Releases() {
		if tested.MinorString() == release.MinorString() && tested != release && !slices.Contains(near, tested) {
			near = append(near, tested)
		}
	}
	return near
}

// unknownBranch explains that the module of a release could not be had.
func (j *job) unknownBranch(ctx context.Context, release versions.Release, failed *Error) error {
	if failed.Cause != CauseModuleMissing {
		return failed
	}
	failed.Cause = CauseBranchUnknown
	failed.Modules = []string{kubernetes + "@" + release.String()}
	failed.Message = fmt.Sprintf("the module proxy has no %s %s: there is no such release, or it is not served", kubernetes, release)
	failed.Try = "name a release that exists, such as " + newestTested(release)
	if near, ok := j.nearestPatch(ctx, release, nil); ok {
		failed.Try = fmt.Sprintf("%s is served: --branch %s", near, near)
	}
	if ctx.Err() != nil {
		return stopped(ctx, failed.Step)
	}
	return failed
}

// newestTested returns the tested release of the same minor, or else the newest.
func newestTested(release versions.Release) string {
	tested := versions.Releases()
	for _, candidate := range tested {
		if candidate.MinorString() == release.MinorString() {
			return candidate.String()
		}
	}
	if len(tested) == 0 {
		return "v1.24.3"
	}
	return tested[0].String()
}

// missingStaging explains a build that failed for want of staging modules. Those
// that go itself complains of are named; without any, all that are missing.
func (j *job) missingStaging(ctx context.Context, release versions.Release, got staged, failed *Error) error {
	if len(got.Missing) == 0 || !missing(failed) {
		return failed
	}
	needed := slices.DeleteFunc(slices.Clone(got.Missing), func(module string) bool { return !strings.Contains(failed.Output, module) })
	if len(needed) == 0 {
		needed = got.Missing
	}
	failed.Cause, failed.Modules = CauseModuleMissing, needed
	failed.Message = fmt.Sprintf("the module proxy does not serve %s, without which %s cannot be compiled", strings.Join(needed, ", "), release)
	failed.Try = "try another patch of " + release.MinorString()
	var paths []string
	for _, module := range needed {
		path, _, _ := strings.Cut(module, "@")
		paths = append(paths, path)
	}
	if near, ok := j.nearestPatch(ctx, release, paths); ok {
		failed.Try = fmt.Sprintf("%s is the nearest patch that has %s: --branch %s", near, strings.Join(paths, ", "), near)
	}
	if ctx.Err() != nil {
		return stopped(ctx, failed.Step)
	}
	return failed
}
