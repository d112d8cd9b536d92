package versions

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func TestTableOfKnownProblemsIsWellFormed(t *testing.T) {
	issue := regexp.MustCompile(`^kubernetes#[0-9]{5,6}$`)
	seen := map[string]bool{}
	for _, b := range bugs() {
		if !issue.MatchString(b.issue) || seen[b.issue] {
			t.Errorf("%s: not an issue, or twice", b.issue)
		}
		seen[b.issue] = true
		if b.effect == "" || strings.HasSuffix(b.effect, ".") || len(b.in) == 0 {
			t.Errorf("%s: effect %q, %d ranges", b.issue, b.effect, len(b.in))
		}
		if b.when.Plugin != "" &&
			!slices.ContainsFunc(plugins(), func(n names) bool { return slices.Contains(n.list, b.when.Plugin) }) {
			t.Errorf("%s: no plugin %s", b.issue, b.when.Plugin)
		}
		if !slices.IsSortedFunc(b.in, func(a, b patches) int { return cmp.Compare(a.minor, b.minor) }) {
			t.Errorf("%s: minor releases are not in order", b.issue)
		}
		for i, p := range b.in {
			if p.minor < oldestMinor || p.minor > newestMinor || p.from < 0 || p.before <= p.from || i > 0 &&
				b.in[i-1].minor == p.minor {
				t.Errorf("%s: range %+v", b.issue, p)
			}
		}
	}
}

// The golden file is the table as users see it: the bugs with their conditions, and the releases
// that have them.
func TestKnownProblemsOfEachMinorRelease(t *testing.T) {
	var b strings.Builder
	for minor := oldestMinor; minor <= newestMinor+1; minor++ {
		first := Release{Major: 1, Minor: minor}
		fmt.Fprintf(&b, "%s\n", first)
		for _, p := range KnownProblems(first) {
			fix := "not fixed"
			if !p.Fix.IsZero() {
				fix = "fixed in " + p.Fix.String()
			}
			fmt.Fprintf(&b, "    %s: %s, %s", p.Issue, strings.TrimSpace(p.Effect+" "+p.When.String()), fix)
			if p.When.OptIn {
				b.WriteString(", the gate is off by default")
			}
			b.WriteByte('\n')
		}
	}
	golden.Equal(t, "testdata/problems.txt", b.String())
	if found := KnownProblems(Release{Major: 2, Minor: 24}); len(found) > 0 {
		t.Errorf("v2.24.0 has %v", found)
	}
}

// Each range includes the bug's first and last patch, and not the patches next to them.
func TestKnownProblemsBeginAndEndWithTheirPatches(t *testing.T) {
	for _, b := range bugs() {
		for _, p := range b.in {
			for patch, want := range map[int]bool{p.from: true, p.from - 1: false, p.before - 1: true, p.before: false} {
				if patch < 0 || p.before == onward && patch != p.from && patch != p.from-1 {
					continue
				}
				r := Release{Major: 1, Minor: p.minor, Patch: patch}
				if got := HasProblem(r, b.issue); got != want {
					t.Errorf("%s in %s: got %t, want %t", b.issue, r, got, want)
				}
			}
		}
	}
}

func TestKnownProblemsOfReleases(t *testing.T) {
	for _, tt := range []struct {
		release string
		want    []string // issue and fix
	}{
		{"v1.20.15", []string{"kubernetes#110853 v1.22.12", "kubernetes#111803 v1.22.13"}},
		{"v1.21.3", []string{
			"kubernetes#103019 v1.21.4", "kubernetes#110853 v1.22.12", "kubernetes#111803 v1.22.13",
			"kubernetes#109442 v1.21.13"}},
		{"v1.24.3", []string{
			"kubernetes#111803 v1.24.4", "kubernetes#122022 v1.26.12", "kubernetes#120334 v1.25.15",
			"kubernetes#122066 v1.26.13",
			"kubernetes#114526 v1.24.10", "kubernetes#124559 v1.27.14",
		}},
		{"v1.28.5", []string{
			"kubernetes#122066 v1.28.6", "kubernetes#124559 v1.28.10", "kubernetes#123465 v1.28.10",
			"kubernetes#127584 v1.29.11"}},
		{"v1.28.11", []string{"kubernetes#125527 v1.28.12", "kubernetes#127584 v1.29.11"}},
		{"v1.29.0-rc.1", []string{
			"kubernetes#122022 v1.29.10", "kubernetes#122066 v1.29.1", "kubernetes#124559 v1.29.5", "kubernetes#123465 v1.29.5",
			"kubernetes#127584 v1.29.11",
			"kubernetes#124517 v1.29.5", "kubernetes#126691 v1.29.9",
		}},
		{"v1.32.13", nil},
		{"v1.34.1", []string{"kubernetes#141781 ", "kubernetes#134400 v1.34.2", "kubernetes#136566 v1.34.4"}},
		{"v1.34.2", []string{"kubernetes#141781 ", "kubernetes#136566 v1.34.4"}},
		{"v1.37.1", []string{"kubernetes#141781 "}},
		{"v1.40.0", []string{"kubernetes#141781 "}},
	} {
		r, err := FromServer(tt.release)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range KnownProblems(r) {
			fix := ""
			if !p.Fix.IsZero() {
				fix = p.Fix.String()
			}
			got = append(got, p.Issue+" "+fix)
		}
		if diff := gocmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.release, diff)
		}
	}
}

// The fix is the next patch of the same minor release, or else the first patch of a later one
// without the bug.
func TestFixIsTheNextReleaseWithoutTheProblem(t *testing.T) {
	for _, b := range bugs() {
		for _, p := range b.in {
			r := Release{Major: 1, Minor: p.minor, Patch: p.from}
			fix := b.fixFor(r)
			switch {
			case fix.IsZero():
				if last := b.in[len(b.in)-1]; last.minor != newestMinor || last.before != onward {
					t.Errorf("%s in %s: no fix", b.issue, r)
				}
			case b.affects(fix), fix.Compare(r) <= 0, p.before != onward && fix.Minor != p.minor:
				t.Errorf("%s in %s: fixed in %s", b.issue, r, fix)
			}
		}
	}
}

func TestConditionHolds(t *testing.T) {
	used := Usage{Extenders: true, Plugins: []string{"NodeAffinity"}, Gates: map[string]bool{"Off": false, "On": true}}
	for text, tt := range map[string]struct {
		c    Condition
		want bool
	}{
		"":                                 {Condition{}, true},
		"if the scheduler calls extenders": {Condition{Extenders: true}, true},
		"if the scheduler calls extenders and pods are preempted": {Condition{Extenders: true,
			Pods: preempted}, true},
		"if compiled-in plugins run": {
			Condition{OutOfTree: true}, false},
		"if fewer plugins run at score than at preScore": {
			Condition{FewScores: true}, false},
		"if plugin NodeAffinity runs": {
			Condition{Plugin: "NodeAffinity"}, true},
		"if plugin ImageLocality runs": {
			Condition{Plugin: "ImageLocality"}, false},
		"if the scheduler calls extenders and plugin ImageLocality runs": {Condition{Extenders: true,
			Plugin: "ImageLocality"}, false},
		"if feature gate Default is enabled": {
			Condition{Gate: "Default"}, true},
		"if feature gate Off is enabled": {Condition{Gate: "Off"},
			false},
		"if feature gate Alpha is enabled": {Condition{Gate: "Alpha",
			OptIn: true}, false},
		"if feature gate On is enabled": {Condition{Gate: "On",
			OptIn: true}, true},
		"if the scheduler calls an extender that filters with nodeCacheCapable: false": {
			Condition{WholeNodes: true}, false},
		"if three or more plugins are enabled at one extension point that multiPoint enables too": {
			Condition{Overrides: true}, false},
	} {
		if got := tt.c.Holds(used); got != tt.want {
			t.Errorf("%+v holds: %t", tt.c, got)
		}
		if got := tt.c.String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}
