package adapter_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/scheduler/adapter"
)

func TestEveryMinorHasAnEra(t *testing.T) {
	for minor, want := range map[int]string{19: "", 20: "b", 28: "b", 29: "c", 32: "c", 33: "d", 34: "e", 35: "f", 37: "f", 38: ""} {
		got, err := adapter.Era(minor)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("1.%d: got %q, %v", minor, got, err)
		}
	}
	folders, err := adapter.Folders(24)
	if diff := cmp.Diff([]string{"scheduler", "scheduler/adapter", "scheduler/adapter/host", "scheduler/adapter/b"}, folders); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestFileNamesSayWhichMinorsTheyAreFor(t *testing.T) {
	names := []string{"all.go", "all_test.go", "new_from24.go", "old_before24.go", "some_from22_before30.go", "README.md", "with_words.go"}
	for minor, want := range map[int][]string{
		20: {"all.go", "old_before24.go", "with_words.go"},
		23: {"all.go", "old_before24.go", "some_from22_before30.go", "with_words.go"},
		24: {"all.go", "new_from24.go", "some_from22_before30.go", "with_words.go"},
		30: {"all.go", "new_from24.go", "with_words.go"},
	} {
		if diff := cmp.Diff(want, adapter.Files(minor, names)); diff != "" {
			t.Errorf("1.%d: %s", minor, diff)
		}
	}
}

// A file that go vet would choke on must be told by its first line, which generators drop.
func TestFilesForOtherReleasesBeginWithTheConstraint(t *testing.T) {
	for _, folder := range []string{"b", "c", "d", "e", "f", "host"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			source, err := os.ReadFile(folder + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			pinned := len(folder) > 1 || folder == "f"
			here := pinned && len(adapter.Files(36, []string{e.Name()})) == 1
			if got := strings.HasPrefix(string(source), "//go:build pmksched\n\n"); got == here {
				t.Errorf("%s/%s: compiled here %v, constraint %v", folder, e.Name(), here, got)
			}
		}
	}
}

func TestPluginIsComposedOfItsPoints(t *testing.T) {
	for _, c := range []struct {
		name    string
		minor   int
		methods []string
		want    adapter.Composition
		wantErr string
	}{
		{"score with normalisation", 24, []string{"Name", "NormalizeScore", "Score", "Helper"}, adapter.Composition{Structs: []string{"ScorePoint"}, Points: []string{"Score"}}, ""},
		{"in the framework's order", 37, []string{"Less", "Bind", "Unreserve", "Reserve"}, adapter.Composition{Structs: []string{"QueueSortPoint", "ReservePoint", "BindPoint"}, Points: []string{"QueueSort", "Reserve", "Bind"}}, ""},
		{"events are not configured", 20, []string{"Filter", "EventsToRegister"}, adapter.Composition{Structs: []string{"FilterPoint", "EventsPoint"}, Points: []string{"Filter"}}, ""},
		{"prefilter from 1.24", 24, []string{"PreFilter", "AddPod", "RemovePod"}, adapter.Composition{Structs: []string{"PreFilterPoint"}, Points: []string{"PreFilter"}}, ""},
		{"prefilter before 1.24", 23, []string{"PreFilter"}, adapter.Composition{Structs: []string{"PreFilterPoint", "NodeSetPoint"}, Points: []string{"PreFilter", "Filter"}}, ""},
		{"prefilter and filter before 1.24", 23, []string{"PreFilter", "Filter"}, adapter.Composition{Structs: []string{"PreFilterPoint", "FilterPoint"}, Points: []string{"PreFilter", "Filter"}}, ""},
		{"preenqueue from 1.26", 26, []string{"PreEnqueue"}, adapter.Composition{Structs: []string{"PreEnqueuePoint"}, Points: []string{"PreEnqueue"}}, ""},
		{"preenqueue before 1.26", 25, []string{"PreEnqueue"}, adapter.Composition{}, "from 1.26 on"},
		{"half of a point", 30, []string{"Reserve"}, adapter.Composition{}, "no method Unreserve"},
		{"half of an addition", 30, []string{"PreFilter", "AddPod"}, adapter.Composition{}, "no method RemovePod"},
		{"an addition to nothing", 30, []string{"NormalizeScore", "Filter"}, adapter.Composition{}, "never called"},
		{"nothing", 30, []string{"Name"}, adapter.Composition{}, "no method of an extension point"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := adapter.Compose(c.minor, c.methods)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("got %v, want %q", err, c.wantErr)
			}
		})
	}
}
