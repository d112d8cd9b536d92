//go:build releases

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// compared compares a tested release of a minor release with the rows of another one.
func compared(t *testing.T, minor, rows int) map[string]table {
	t.Helper()
	t.Chdir("../..")
	i := slices.IndexFunc(versions.Releases(), func(r versions.Release) bool { return r.Minor == minor })
	release := versions.Releases()[i]
	s, err := open(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	before, err := openBefore(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]table{}
	for _, compared := range compare(s, before, versions.Release{Major: 1, Minor: rows}) {
		byName[compared.Name] = compared
	}
	return byName
}

func TestTablesAgreeWithTheReleases(t *testing.T) {
	for minor := 33; minor <= newest(); minor++ {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			found := compared(t, minor, minor)
			for _, name := range slices.Sorted(maps.Keys(found)) {
				if len(found[name].Differences) > 0 {
					t.Errorf("%s: %s\n%s", name, found[name].File, strings.Join(found[name].Differences, "\n"))
				}
			}
		})
	}
}

func newest() int { return versions.Releases()[0].Minor }

// notFound are the rows of the newest minor release that the source of a release does not show, or
// that the tables cannot be without.
func notFound() map[string]string {
	return map[string]string{
		"versions/problem_table.go": "known problems come from the CHANGELOG of the patches that fix them, and from issues",
		"internal/foresight/snapshot/fields_*.go": "the fields of objects have no release: a new kind is found, " +
			"a new field of a known kind is not",
		"internal/foresight/snapshot/kinds.go": "the kinds have no release, so that no row can be taken out; a kind that " +
			"is missing is found",
		"internal/cluster/explain/reason.go": "the texts with which plugins refuse nodes are compared by the tests of " +
			"explain, with the binaries",
		"docs/releases.md": "make test-matrix writes the row",
	}
}

// Each row of the newest minor release is taken out, and found again in the source of its release.
func TestAsOfFindsTheRowsThatWereTakenOut(t *testing.T) {
	minor := newest()
	found := compared(t, minor, minor-1)
	for _, row := range slices.Concat(
		rulesThatDiffer(t, minor), gatesThatDiffer(minor), configurationRows(minor), methodRows(minor), fileRows(minor),
	) {
		name, text := row[0], row[1]
		if !slices.ContainsFunc(found[name].Differences, func(d string) bool { return strings.Contains(d, text) }) {
			t.Errorf("%s: %q was taken out and not found, only\n%s", name, text, strings.Join(found[name].Differences, "\n"))
		}
	}
	for place, reason := range notFound() {
		t.Logf("not found: %s: %s", place, reason)
	}
}

// rulesThatDiffer returns the table and a part of the expected difference for each field of
// versions.Rules that the newest minor release changed. A field without a reader fails.
func rulesThatDiffer(t *testing.T, minor int) (rows [][2]string) {
	t.Helper()
	now := versions.Release{Major: 1, Minor: minor}
	then := versions.Release{Major: 1, Minor: minor - 1}
	readers := map[string]string{
		"Plugins": "in-tree plugins", "UnsignedPlugins": "in-tree plugins that do not sign pods",
		"Flags": "flags of kube-scheduler", "Accepted": "config APIs",
		"Preferred": "config APIs", "Render": "config APIs", "RejectedPlugins": "plugins that the config API refuses",
		"Gangs": "groups of pods", "Go": "version of Go", "Metrics": "metrics that are read",
		"KubeadmAPI": "kubeadm", "KubeletSkew": "kubeadm",
	}
	for _, name := range []string{
		"ResourceLocks", "LivenessPath", "ReadinessPath", "BuildTags", "VersionPackages", "PolicyAPI",
	} {
		readers[name] = "locks, probes, build tags, APIs"
	}
	for _, p := range probes() {
		readers[p.field] = "what the release has"
	}
	for _, name := range behaviors() {
		readers[name] = "functions whose behavior is kept by hand"
	}
	before := fieldsOf(then.Rules())
	for name, value := range fieldsOf(now.Rules()) {
		table := readers[name]
		switch {
		case table == "":
			t.Errorf("no check reads versions.Rules.%s", name)
		case !reflect.DeepEqual(value, before[name]):
			for _, text := range changedTexts(before[name], value) {
				rows = append(rows, [2]string{table, text})
			}
		}
	}
	for _, resource := range versions.Required(now) {
		if !slices.Contains(versions.Required(then), resource) {
			rows = append(rows, [2]string{"resources that the scheduler watches", resource})
		}
	}
	return rows
}

// changedTexts returns the names that only one of two values has.
func changedTexts(then, now any) []string {
	word := regexp.MustCompile(`[\w.][\w./-]*\w`)
	before, after := word.FindAllString(fmt.Sprint(then), -1), word.FindAllString(fmt.Sprint(now), -1)
	var changed []string
	for _, text := range slices.Concat(before, after) {
		if slices.Contains(before, text) != slices.Contains(after, text) {
			changed = append(changed, text)
		}
	}
	return changed
}

// behaviors are the fields of versions.Rules that no declaration shows. The functions that decide
// them are among the [mirrors], except for etcd 3.4, which is too old for every release to come,
// and the fields that ended with 1.22.
func behaviors() []string {
	return []string{
		"Etcd34", "LeaderElectFlagsWithConfig", "MultiPointTwice", "OrderedTies", "PolicyNamed", "RepeatsFit",
		"RequiresExtenderCA", "StaleImageCounts", "WritesDefaultPlugins",
	}
}

func gatesThatDiffer(minor int) (rows [][2]string) {
	now, then := versions.Release{Major: 1, Minor: minor}.Gates(), versions.Release{Major: 1, Minor: minor - 1}.Gates()
	for _, name := range unionKeys(now, then) {
		if now[name] != then[name] {
			rows = append(rows, [2]string{"feature gates, defaults and locks", fmt.Sprintf("%s %d:%s", name, minor, now[name])})
		}
	}
	return rows
}

// configurationRows are the rows of profiles/schema.
func configurationRows(minor int) (rows [][2]string) {
	for _, p := range schema.ExtensionPoints() {
		if p.Since == minor {
			rows = append(rows, [2]string{"fields of the configuration", p.Name})
		}
	}
	for _, p := range schema.InTreePlugins() {
		for point, since := range p.Late {
			if since == minor {
				rows = append(rows, [2]string{"extension points of in-tree plugins", p.Name + " implements " + point + ": true"})
			}
		}
		if p.Minor == minor {
			rows = append(rows, [2]string{"default plugins and their weights", p.Name})
		}
		if args, found := schema.KnownArgs(p.Name); found && args.Since == minor {
			rows = append(rows, [2]string{"arguments of plugins", p.Name})
		}
	}
	return rows
}

// methodRows are the rows of internal/artifact/build/plugins/native.go.
func methodRows(minor int) (rows [][2]string) {
	now, then := plugins.MethodForms(minor), plugins.MethodForms(minor-1)
	for name, forms := range now {
		if !slices.Equal(forms, then[name]) {
			rows = append(rows, [2]string{"methods of the scheduling framework", name + forms[len(forms)-1]})
		}
	}
	return rows
}

// fileRows are the files of scheduler and scheduler/adapter that begin with the minor release, each
// with the difference that asks for it.
func fileRows(minor int) (rows [][2]string) {
	asked := map[string][2]string{
		"queue":    {"methods of the scheduling framework", "Less("},
		"claims":   {"functions whose behavior is kept by hand", "addDRANodeAllocatableClaimResources"},
		"podlevel": {"functions whose behavior is kept by hand", "PodRequests"},
		"resize":   {"functions whose behavior is kept by hand", "AggregateContainerRequests"},
	}
	for _, dir := range []string{"scheduler", "scheduler/adapter"} {
		files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("*_from%d*.go", minor)))
		for _, file := range files {
			name, _, _ := strings.Cut(filepath.Base(file), "_")
			row, known := asked[name]
			if !known {
				row = [2]string{"no difference asks for " + file, file}
			}
			rows = append(rows, row)
		}
	}
	for _, text := range []string{"versions/releases.txt", "newestMinor", "NewestMinor", "lastSurveyed"} {
		rows = append(rows, [2]string{"the newest minor release", text})
	}
	return rows
}

func TestGatesFileIsWrittenFromTheSources(t *testing.T) {
	t.Chdir("../..")
	var out strings.Builder
	if err := printGates(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("versions/gates.txt")
	if err != nil || out.String() != string(written) {
		t.Errorf("versions/gates.txt differs from the sources (%v): write it with `go run ./hack/facts --gates`", err)
	}
}
