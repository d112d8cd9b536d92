package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The limits of the search for another patch to build. The search for a hint gets less time than
// that of a build with --nearest.
const (
	maxNearby       = 12
	hintTimeout     = time.Minute
	nearestTimeout  = 3 * time.Minute
	maxNearestTries = 4
)

// fromNearest builds the nearest patch of the same minor whose modules download.
// failed is the failure to build the requested release.
func (k *releaseBuild) fromNearest(ctx context.Context, failed error) (*Result, error) {
	var unavailable *Error
	if !errors.As(failed, &unavailable) || !unavailable.unserved() {
		return nil, failed
	}
	needed := pathsOf(unavailable.Modules)
	tried := []versions.Release{k.release}
	for range maxNearestTries {
		near, found := k.releases.nearest(ctx, nearestTimeout, k.release, needed, tried)
		if ctx.Err() != nil {
			return nil, stopped(ctx, "find the patch nearest to "+k.release.String())
		}
		if !found {
			break
		}
		tried = append(tried, near)
		other := *k
		other.release = near
		result, err := other.fromModules(ctx)
		if err == nil {
			result.Info.Asked = k.release.String()
			result.Info.Warnings = append([]string{k.warnOfOther(near, unavailable)}, result.Info.Warnings...)
			return result, nil
		}
		var also *Error
		if !errors.As(err, &also) || !also.unserved() {
			return nil, err
		}
		needed = slices.Compact(slices.Sorted(slices.Values(append(needed, pathsOf(also.Modules)...))))
	}
	unavailable.Try = fmt.Sprintf("no other patch of %s that was tried can be built; specify another release, such as %s",
		k.release.MinorString(), newestTested(k.release))
	return nil, unavailable
}

func (k *releaseBuild) warnOfOther(near versions.Release, unavailable *Error) string {
	return fmt.Sprintf(
		"%s is built instead of %s, because %s is unavailable; detect still reports %s, so specify %s with --branch",
		near, k.release, strings.Join(unavailable.Modules, ", "), k.release, near)
}

// unserved reports whether a build failed because modules are unavailable.
func (e *Error) unserved() bool {
	return (e.Cause == CauseModuleMissing || e.Cause == CauseBranchUnknown) && len(e.Modules) > 0
}

// pathsOf returns the module paths in a list of path@version, without Kubernetes' own path.
func pathsOf(modules []string) []string {
	var paths []string
	for _, module := range modules {
		if path, _, _ := strings.Cut(module, "@"); path != kubernetes {
			paths = append(paths, path)
		}
	}
	return paths
}

// nearest finds the patch of the same minor, nearest to release and not tried yet, that has
// k8s.io/kubernetes and the needed staging modules. It gives up after limit.
func (r *releases) nearest(
	ctx context.Context, limit time.Duration, release versions.Release, needed []string, tried []versions.Release,
) (near versions.Release, found bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	step := "find the patch nearest to " + release.String()
	// The error that led here is reported if there is none.
	_ = r.step(step, func() error {
		near, found = r.search(ctx, step, release, needed, tried)
		return ctx.Err()
	})
	return near, found
}

func (r *releases) search(
	ctx context.Context, step string, release versions.Release, needed []string, tried []versions.Release,
) (versions.Release, bool) {
	near := slices.DeleteFunc(nearby(release, r.published(ctx, step)),
		func(r versions.Release) bool { return slices.Contains(tried, r) })
	var asked []string
	for _, candidate := range near {
		asked = append(asked, atVersion(append([]string{kubernetes}, needed...), candidate)...)
	}
	answers, err := r.list(ctx, step, asked...)
	if err != nil {
		return versions.Release{}, false
	}
	known := map[string]bool{}
	for _, answer := range answers {
		known[answer.Path+"@"+answer.Version] = answer.Error == nil
	}
	for _, candidate := range near {
		modules := atVersion(needed, candidate)
		if !known[kubernetes+"@"+candidate.String()] ||
			slices.ContainsFunc(modules, func(m string) bool { return !known[m] }) {
			continue
		}
		if len(modules) == 0 || r.downloads(ctx, step, modules) {
			return candidate, true
		}
	}
	return versions.Release{}, false
}

// downloads reports whether all modules download: a proxy may list a version without its source.
func (r *releases) downloads(ctx context.Context, step string, modules []string) bool {
	answers, err := r.download(ctx, step, modules...)
	return err == nil && !slices.ContainsFunc(answers, func(d download) bool { return d.Error != "" })
}

// published returns the releases that a module proxy lists. A proxy lists only some of the releases
// that it serves.
func (r *releases) published(ctx context.Context, step string) []versions.Release {
	answers, err := r.list(ctx, step, "-versions", kubernetes)
	if err != nil {
		return nil
	}
	var found []versions.Release
	for _, answer := range answers {
		for _, version := range answer.Versions {
			if release, err := versions.Parse(version); err == nil {
				found = append(found, release)
			}
		}
	}
	return found
}

// nearby returns patches of the release's minor, nearest first and older before newer: its
// neighbors, the listed patches, and always the tested one.
func nearby(release versions.Release, listed []versions.Release) []versions.Release {
	distance := func(r versions.Release) int { return max(r.Patch-release.Patch, release.Patch-r.Patch) }
	var near []versions.Release
	add := func(r versions.Release) {
		if r.MinorString() == release.MinorString() && r != release && !slices.Contains(near, r) {
			near = append(near, r)
		}
	}
	for patch := max(0, release.Patch-maxNearby/2); patch <= release.Patch+maxNearby/2; patch++ {
		add(versions.Release{Major: release.Major, Minor: release.Minor, Patch: patch})
	}
	for _, r := range listed {
		if r.PreRelease == "" {
			add(r)
		}
	}
	tested := versions.Releases()
	for _, r := range tested {
		add(r)
	}
	slices.SortFunc(near, func(a, b versions.Release) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), a.Compare(b))
	})
	if len(near) <= maxNearby {
		return near
	}
	far := slices.DeleteFunc(slices.Clone(near[maxNearby:]),
		func(r versions.Release) bool { return !slices.Contains(tested, r) })
	return append(near[:maxNearby], far...)
}
