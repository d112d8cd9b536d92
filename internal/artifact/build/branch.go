package build

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Limits for finding the newest patch of a minor: the patches to request, whether the module proxy
// lists them or not (no Kubernetes minor has had more), and the number to download.
const (
	maxPatch         = 24
	maxPatchAttempts = 6
)

// minorBranch matches a minor's names: "v1.24", "1.24" and "release-1.24".
var minorBranch = regexp.MustCompile(`^(?:v|release-)?1\.([0-9]{1,4})$`)

// ResolveBranch returns the release that a user means by the value of --branch. Unless the value is
// a release's name, note reports which release was chosen and why:
//
//	v1.24.3               the release itself
//	v1.24, release-1.24   the newest patch of the minor that the module proxy serves completely
//	v1.29.3-eks-036c24b   the upstream release of a distribution's version: v1.29.3
//
// check refuses releases before anything is downloaded.
func ResolveBranch(
	ctx context.Context, branch string, e Environment, check func(versions.Release) error,
) (_ versions.Release, note string, err error) {
	if match := minorBranch.FindStringSubmatch(branch); match != nil {
		minor, err := strconv.Atoi(match[1])
		if err != nil {
			return versions.Release{}, "", fmt.Errorf("parse branch %q: %w", branch, err)
		}
		if err := check(versions.Release{Major: 1, Minor: minor}); err != nil {
			return versions.Release{}, "", err
		}
		return newestPatch(ctx, branch, minor, e)
	}
	release, err := versions.Parse(branch)
	if err != nil {
		upstream, fromErr := versions.FromServer(branch)
		if fromErr != nil {
			return versions.Release{}, "", err
		}
		release, note = upstream, fmt.Sprintf("using %s, the upstream release of %s", upstream, branch)
	}
	if err := check(release); err != nil {
		return versions.Release{}, "", err
	}
	return release, note, nil
}

// newestPatch finds the newest patch of a minor that the module proxy serves. A patch whose staging
// modules are all served is preferred to a newer one.
func newestPatch(
	ctx context.Context, branch string, minor int, e Environment,
) (best versions.Release, note string, err error) {
	first := versions.Release{Major: 1, Minor: minor}
	j, err := newJob(e)
	if err != nil {
		return versions.Release{}, "", err
	}
	defer j.close(&err)
	j.releases.noHints = true
	step := "find the newest patch of " + first.MinorString()
	err = j.goTool.step(step, func() error {
		candidates, err := j.releases.served(ctx, step, first)
		if err != nil {
			return err
		}
		best, note, err = j.releases.mostComplete(ctx, branch, first, candidates)
		return err
	})
	return best, note, err
}

// served returns the patches of a minor that the module proxy knows, newest first.
func (r *releases) served(ctx context.Context, step string, first versions.Release) ([]versions.Release, error) {
	var patches []versions.Release
	for patch := range maxPatch + 1 {
		patches = append(patches, versions.Release{Major: first.Major, Minor: first.Minor, Patch: patch})
	}
	for _, listed := range r.published(ctx, step) {
		if listed.MinorString() == first.MinorString() && listed.PreRelease == "" && listed.Patch > maxPatch {
			patches = append(patches, listed)
		}
	}
	var modules []string
	for _, patch := range patches {
		modules = append(modules, kubernetes+"@"+patch.String())
	}
	answers, err := r.list(ctx, step, modules...)
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	var failed error
	for _, answer := range answers {
		served[answer.Version] = answer.Error == nil
		if answer.Error != nil {
			if cause := diagnose(step, redact(answer.Error.Err), errors.New("go list failed")); !isMissing(cause) {
				failed = cause
			}
		}
	}
	patches = slices.DeleteFunc(patches, func(patch versions.Release) bool { return !served[patch.String()] })
	if len(patches) == 0 && failed != nil {
		return nil, failed
	}
	slices.SortFunc(patches, func(a, b versions.Release) int { return b.Compare(a) })
	return patches, nil
}

// mostComplete downloads candidates until all modules of one are served. If there is none, it
// returns the one with the fewest missing modules.
func (r *releases) mostComplete(
	ctx context.Context, branch string, first versions.Release, candidates []versions.Release,
) (best versions.Release, note string, err error) {
	fewest, skipped := -1, []string{}
	for i, candidate := range candidates {
		if i == maxPatchAttempts {
			break
		}
		s, err := r.read(ctx, candidate)
		if ctx.Err() != nil {
			return versions.Release{}, "", stopped(ctx, "read "+candidate.String())
		}
		if err != nil {
			skipped = append(skipped, candidate.String())
			continue
		}
		got, err := r.downloadStaging(ctx, candidate, s)
		if err != nil {
			return versions.Release{}, "", err
		}
		if len(got.Missing) == 0 {
			note = fmt.Sprintf("using %s, the newest patch of %s that the module proxy serves completely", candidate,
				branch)
			if len(skipped) > 0 {
				note += " (not " + strings.Join(skipped, ", ") + ")"
			}
			return candidate, note, nil
		}
		skipped = append(skipped, candidate.String())
		if fewest < 0 || len(got.Missing) < fewest {
			fewest, best = len(got.Missing), candidate
			note = fmt.Sprintf("using %s: the module proxy serves no patch of %s completely, and %s lacks only %s",
				candidate, branch, candidate, strings.Join(got.Missing, ", "))
		}
	}
	if fewest < 0 {
		return versions.Release{}, "", problem.Invalidf("specify a release, such as "+newestTested(first),
			"the module proxy serves no patch of %s", branch)
	}
	return best, note, nil
}
