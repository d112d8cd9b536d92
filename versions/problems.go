package versions

import (
	"slices"
	"strings"
)

// Problem is a known kube-scheduler bug in a release.
type Problem struct {
	// Issue is the upstream issue or pull request: "kubernetes#134400".
	Issue string
	// Effect is the failure.
	Effect string
	// When is the condition under which the failure occurs.
	When Condition
	// Fix is the next release with the fix, of the same minor release if possible. It is zero if
	// the bug is not fixed.
	Fix Release
}

// Condition is the condition under which a problem matters: all fields that are set must hold. The
// zero value always holds.
type Condition struct {
	// Extenders: the scheduler calls extenders. WholeNodes: it sends whole nodes to an extender that
	// filters, not names.
	Extenders, WholeNodes bool
	// Overrides: multiPoint plugins are enabled again at an extension point in an order for which one
	// of them is loaded twice.
	Overrides bool
	// FewScores: fewer plugins run at score than at preScore.
	FewScores bool
	// OutOfTree: compiled-in plugins run that are not in-tree.
	OutOfTree bool
	// Plugin is an in-tree plugin that runs.
	Plugin string
	// Gate is a feature gate that is enabled. OptIn: it is disabled by default.
	Gate  string
	OptIn bool
	// Pods is the condition that must hold for pods: "pods are preempted". A configuration does not
	// show it.
	Pods string
}

// Usage is the features of one scheduler that conditions refer to.
type Usage struct {
	Extenders, WholeNodes, Overrides, FewScores, OutOfTree bool
	// Plugins are the in-tree plugins that run in one of its profiles.
	Plugins []string
	// Gates are the feature gates that its flags set.
	Gates map[string]bool
}

// Holds reports whether a scheduler meets the condition, except for Pods.
func (c Condition) Holds(u Usage) bool {
	enabled, set := u.Gates[c.Gate]
	switch {
	case c.Extenders && !u.Extenders, c.WholeNodes && !u.WholeNodes, c.Overrides && !u.Overrides,
		c.FewScores && !u.FewScores, c.OutOfTree && !u.OutOfTree:
		return false
	case c.Plugin != "" && !slices.Contains(u.Plugins, c.Plugin):
		return false
	case c.Gate != "" && (set && !enabled || !set && c.OptIn):
		return false
	}
	return true
}

// String returns the condition as a clause, "if the scheduler calls extenders", or "".
func (c Condition) String() string {
	var parts []string
	for _, part := range []struct {
		set  bool
		text string
	}{
		{c.Extenders, "the scheduler calls extenders"},
		{c.WholeNodes, "the scheduler calls an extender that filters with nodeCacheCapable: false"},
		{c.Overrides, "three or more plugins are enabled at one extension point that multiPoint enables too"},
		{c.FewScores, "fewer plugins run at score than at preScore"},
		{c.OutOfTree, "compiled-in plugins run"},
		{c.Plugin != "", "plugin " + c.Plugin + " runs"},
		{c.Gate != "", "feature gate " + c.Gate + " is enabled"},
		{c.Pods != "", c.Pods},
	} {
		if part.set {
			parts = append(parts, part.text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "if " + strings.Join(parts, " and ")
}

// KnownProblems returns the known bugs in a release's kube-scheduler, in table order. Pre-releases
// share the bugs of their release, and releases newer than the table the bugs that no release in it
// fixes.
func KnownProblems(r Release) []Problem {
	var found []Problem
	for _, b := range bugs() {
		if b.affects(r) {
			found = append(found, Problem{Issue: b.issue, Effect: b.effect, When: b.when, Fix: b.fixFor(r)})
		}
	}
	return found
}

// HasProblem reports whether a release's kube-scheduler has a known bug: "kubernetes#134400".
func HasProblem(r Release, issue string) bool {
	return slices.ContainsFunc(KnownProblems(r), func(p Problem) bool { return p.Issue == issue })
}

// bug is a row in the table of known bugs.
type bug struct {
	issue, effect string
	when          Condition
	in            []patches
}

// patches are the patches from ≤ patch < before of a minor release.
type patches struct{ minor, from, before int }

// patchesOf returns a minor release's affected patches; ok is false if it has none.
func (b bug) patchesOf(minor int) (affected patches, ok bool) {
	i := slices.IndexFunc(b.in, func(p patches) bool { return p.minor == minor })
	if i < 0 {
		return patches{}, false
	}
	return b.in[i], true
}

func (b bug) affects(r Release) bool {
	if r.Minor > newestMinor {
		r.Minor, r.Patch = newestMinor, onward-1
	}
	p, ok := b.patchesOf(r.Minor)
	return ok && r.Major == 1 && p.from <= r.Patch && r.Patch < p.before
}

// fixFor returns the first release after r without the bug; zero if there is none in the table.
func (b bug) fixFor(r Release) Release {
	for minor := r.Minor; minor <= newestMinor; minor++ {
		p, ok := b.patchesOf(minor)
		switch {
		case !ok || minor > r.Minor && p.from > 0:
			return Release{Major: r.Major, Minor: minor}
		case p.before != onward:
			return Release{Major: r.Major, Minor: minor, Patch: p.before}
		}
	}
	return Release{}
}
