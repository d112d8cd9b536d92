package build

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// staged is the result of downloading a release's staging modules.
type staged struct {
	// GoSum is the lines of go.sum for the downloaded modules.
	GoSum string `json:"goSum"`
	// Missing are the unavailable modules, as path@version. Not every program needs every staging
	// module.
	Missing []string `json:"missing,omitempty"`
}

func (s staged) warnings(release versions.Release) []string {
	var warnings []string
	for _, module := range s.Missing {
		warnings = append(warnings, fmt.Sprintf("%s does not download; %s is built without it", module, release))
	}
	return warnings
}

func (r *releases) stagedPath(release versions.Release) string {
	return r.cache.fact("staging", release.String())
}

// recallStaging returns the result of the last download.
func (r *releases) recallStaging(release versions.Release) (staged, bool) {
	var known staged
	found, err := readJSON(r.stagedPath(release), &known)
	return known, err == nil && found
}

// downloadStaging downloads a release's staging modules, several at a time. A missing module is not
// an error.
func (r *releases) downloadStaging(ctx context.Context, release versions.Release, s source) (staged, error) {
	step := "download the staging modules of " + release.String()
	var got staged
	if len(s.Staging) > 0 {
		answers, err := r.download(ctx, step, atVersion(s.Staging, release)...)
		if err != nil {
			return staged{}, err
		}
		for _, answer := range answers {
			if answer.Error == "" {
				got.GoSum += sumLines(answer)
				continue
			}
			failed := diagnose(step, redact(answer.Error), errors.New("go mod download failed"))
			if !isMissing(failed) {
				return staged{}, failed
			}
			got.Missing = append(got.Missing, answer.String())
		}
	}
	slices.Sort(got.Missing)
	if err := writeJSON(r.stagedPath(release), got); err != nil {
		return staged{}, storage(ctx, step, err)
	}
	return got, nil
}

// isMissing reports whether a module is unavailable, and not whether the module proxy does not
// answer or serves other content than expected.
func isMissing(e *Error) bool {
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

func (r *releases) explainUnknown(ctx context.Context, release versions.Release, failed *Error) error {
	if failed.Cause != CauseModuleMissing {
		return failed
	}
	failed.Cause = CauseBranchUnknown
	failed.Modules = []string{kubernetes + "@" + release.String()}
	failed.Message = fmt.Sprintf("the module proxy has no %s %s: the release does not exist, or it is not served",
		kubernetes, release)
	failed.Try = "specify a release that exists, such as " + newestTested(release)
	if near, ok := r.suggest(ctx, release, nil); ok {
		failed.Try = fmt.Sprintf("%s is served: --branch %s, or --nearest", near, near)
	}
	if ctx.Err() != nil {
		return stopped(ctx, failed.Step)
	}
	return failed
}

// suggest finds the patch that an error suggests.
func (r *releases) suggest(ctx context.Context, release versions.Release, needed []string) (versions.Release, bool) {
	if r.noHints {
		return versions.Release{}, false
	}
	return r.nearest(ctx, hintTimeout, release, needed, []versions.Release{release})
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

// explainMissing returns the error for a build that failed because of missing staging modules. It
// names the modules in the output of go, or else all missing modules.
func (r *releases) explainMissing(ctx context.Context, release versions.Release, got staged, failed *Error) error {
	if len(got.Missing) == 0 || !isMissing(failed) {
		return failed
	}
	needed := slices.DeleteFunc(slices.Clone(got.Missing),
		func(module string) bool { return !strings.Contains(failed.Output, module) })
	if len(needed) == 0 {
		needed = got.Missing
	}
	failed.Cause, failed.Modules = CauseModuleMissing, needed
	failed.Message = fmt.Sprintf("the module proxy does not serve %s, which %s needs to compile",
		strings.Join(needed, ", "), release)
	failed.Try = "try another patch of " + release.MinorString()
	paths := pathsOf(needed)
	if near, ok := r.suggest(ctx, release, paths); ok {
		failed.Try = fmt.Sprintf("%s is the nearest patch that has %s: --branch %s, or --nearest", near,
			strings.Join(paths, ", "), near)
	}
	if ctx.Err() != nil {
		return stopped(ctx, failed.Step)
	}
	return failed
}
