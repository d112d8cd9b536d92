package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// unknownBranch explains that the module of a release could not be had.
func (j *job) unknownBranch(ctx context.Context, release versions.Release, failed *Error) error {
	if failed.Cause != CauseModuleMissing {
		return failed
	}
	failed.Cause = CauseBranchUnknown
	failed.Modules = []string{kubernetes + "@" + release.String()}
	failed.Message = fmt.Sprintf("the module proxy has no %s %s: there is no such release, or it is not served", kubernetes, release)
	failed.Try = "name a release that exists, such as " + newestTested(release)
	if near, ok := j.hintAt(ctx, release, nil); ok {
		failed.Try = fmt.Sprintf("%s is served: --branch %s, or --nearest", near, near)
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
	paths := pathsOf(needed)
	if near, ok := j.hintAt(ctx, release, paths); ok {
		failed.Try = fmt.Sprintf("%s is the nearest patch that has %s: --branch %s, or --nearest", near, strings.Join(paths, ", "), near)
	}
	if ctx.Err() != nil {
		return stopped(ctx, failed.Step)
	}
	return failed
}
