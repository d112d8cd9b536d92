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

// The bounds of the search for a patch that can be built instead. A hint is not
// worth as long a wait as a build that was told to take another patch.
const (
	nearbyPatches = 12
	hintTime      = time.Minute
	nearestTime   = 3 * time.Minute
	nearestBuilds = 4
)

// fromNearest builds the nearest patch of the same minor whose modules download.
// failed is why the release asked for cannot be built.
func (k *kubernetesBuild) fromNearest(ctx context.Context, failed error) (*Result, error) {
	var lacking *Error
	if !errors.As(failed, &lacking) || !lacking.unserved() {
		return nil, failed
	}
	needed := pathsOf(lacking.Modules)
	tried := []versions.Release{k.release}
	for range nearestBuilds {
		near, found := k.nearestPatch(ctx, nearestTime, k.release, needed, tried)
		if ctx.Err() != nil {
			return nil, stopped(ctx, "look for the patch nearest to "+k.release.String())
		}
		if !found {
			break
		}
		tried = append(tried, near)
		other := *k
		other.release = near
		if k.plugins != nil {
			options := *k.plugins
			options.Release, other.plugins = near, &options
		}
		result, err := other.fromModules(ctx)
		if err == nil {
			result.Info.Asked = k.release.String()
			result.Info.Warnings = append([]string{k.insteadOf(near, lacking)}, result.Info.Warnings...)
			return result, nil
		}
		var also *Error
		if !errors.As(err, &also) || !also.unserved() {
			return nil, err
		}
		needed = slices.Compact(slices.Sorted(slices.Values(append(needed, pathsOf(also.Modules)...))))
	}
	lacking.Try = fmt.Sprintf("no other patch of %s that was tried can be built either; name a release that can, such as %s", k.release.MinorString(), newestTested(k.release))
	return nil, lacking
}

func (k *kubernetesBuild) insteadOf(near versions.Release, lacking *Error) string {
	return fmt.Sprintf("%s was built in place of %s, for which %s cannot be had; detect goes on naming %s, so name %s where a release is asked for",
		near, k.release, strings.Join(lacking.Modules, ", "), k.release, near)
}

// unserved reports whether a build failed because modules cannot be had.
func (e *Error) unserved() bool {
	return (e.Cause == CauseModuleMissing || e.Cause == CauseBranchUnknown) && len(e.Modules) > 0
}

// pathsOf returns the paths of modules given as path@version, without that of
// Kubernetes itself, which every release needs.
func pathsOf(modules []string) []string {
	var paths []string
	for _, module := range modules {
		if path, _, _ := strings.Cut(module, "@"); path != kubernetes {
			paths = append(paths, path)
		}
	}
	return paths
}

// hintAt looks for the patch that an error is to name.
func (j *job) hintAt(ctx context.Context, release versions.Release, needed []string) (versions.Release, bool) {
	if j.nearest {
		return versions.Release{}, false
	}
	return j.nearestPatch(ctx, hintTime, release, needed, []versions.Release{release})
}

// nearestPatch looks for the patch of the same minor, nearest to release and not
// tried yet, that has k8s.io/kubernetes and the needed staging modules. It gives
// up when the time is over.
func (j *job) nearestPatch(ctx context.Context, limit time.Duration, release versions.Release, needed []string, tried []versions.Release) (near versions.Release, found bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	step := "look for the patch nearest to " + release.String()
	// What cannot be found is told by the error that led here.
	_ = j.step(step, func() error {
		near, found = j.search(ctx, step, release, needed, tried)
		return ctx.Err()
	})
	return near, found
}

func (j *job) search(ctx context.Context, step string, release versions.Release, needed []string, tried []versions.Release) (versions.Release, bool) {
	near := slices.DeleteFunc(nearby(release, j.published(ctx, step)), func(r versions.Release) bool { return slices.Contains(tried, r) })
	var asked []string
	for _, candidate := range near {
		asked = append(asked, atVersion(append([]string{kubernetes}, needed...), candidate)...)
	}
	answers, err := j.list(ctx, step, asked...)
	if err != nil {
		return versions.Release{}, false
	}
	known := map[string]bool{}
	for _, answer := range answers {
		known[answer.Path+"@"+answer.Version] = answer.Error == nil
	}
	for _, candidate := range near {
		modules := atVersion(needed, candidate)
		if !known[kubernetes+"@"+candidate.String()] || slices.ContainsFunc(modules, func(m string) bool { return !known[m] }) {
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

// published returns the releases that a module proxy lists. It lists only some
// of those that download.
func (j *job) published(ctx context.Context, step string) []versions.Release {
	answers, err := j.list(ctx, step, "-versions", kubernetes)
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

// nearby returns patches of the release's minor, nearest first and older before
// newer: its neighbours, those that are listed, and the one that is tested,
// which is always among them.
func nearby(release versions.Release, listed []versions.Release) []versions.Release {
	distance := func(r versions.Release) int { return max(r.Patch-release.Patch, release.Patch-r.Patch) }
	var near []versions.Release
	add := func(r versions.Release) {
		if r.MinorString() == release.MinorString() && r != release && !slices.Contains(near, r) {
			near = append(near, r)
		}
	}
	for patch := max(0, release.Patch-nearbyPatches/2); patch <= release.Patch+nearbyPatches/2; patch++ {
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
	if len(near) <= nearbyPatches {
		return near
	}
	far := slices.DeleteFunc(slices.Clone(near[nearbyPatches:]), func(r versions.Release) bool { return !slices.Contains(tested, r) })
	return append(near[:nearbyPatches], far...)
}
