package plugins

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/versions"
)

// The examples of a clone are plugins of every release, and only the compiled-in examples are in
// the generated module.
func TestExamplesArePluginsOfEveryRelease(t *testing.T) {
	const examples = "../../../../examples"
	want := map[string][]string{
		"cheapnodes": {"score"},
		"rackspread": {"preScore", "score"},
		"targetload": {"score", "reserve"},
		"teamnodes":  {"filter"},
	}
	entries, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, entry := range entries {
		name := entry.Name()
		// The other directories have no plugins.
		if sources, err := filepath.Glob(filepath.Join(examples, name, "*.go")); err != nil || len(sources) == 0 {
			continue
		}
		found++
		for _, text := range []string{"v1.20.15", "v1.24.3", "v1.37.1"} {
			infos, err := readPlugins(t, text, Plugin{Dir: filepath.Join(examples, name)})
			if err != nil || len(infos) != 1 || !slices.Equal(infos[0].Points, want[name]) || !infos[0].Signs ||
				infos[0].Package != APIModule+"/examples/"+name {
				t.Errorf("%s, %s: %+v, %v", name, text, infos, err)
			}
		}
		source, err := os.ReadFile(filepath.Join(examples, name, name+".go"))
		most := 100
		// the example of docs/from-scheduler-plugins.md, with everything that a native plugin of its kind
		// has
		if name == "targetload" {
			most = 120
		}
		if lines := bytes.Count(source, []byte("\n")); err != nil || lines >= most {
			t.Errorf("%s has %d lines, %v", name, lines, err)
		}
	}
	if found != len(want) {
		t.Errorf("%d examples, want %d", found, len(want))
	}
}

func TestOtherExamplesAreNotCompiledIn(t *testing.T) {
	release, err := versions.Parse("v1.24.3")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := versions.Select(release)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Read(t.Context(), Options{
		Release: release, Rules: rules, Plugins: []Plugin{{Dir: "../../../../examples/teamnodes"}}, Sources: apiSources(t),
		Platform: Platform{OS: "linux", Arch: "amd64", Tags: rules.BuildTags, Go: rules.Go},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := set.APIFiles(Target{})
	if files[APIDir+"/examples/teamnodes/teamnodes.go"] == nil ||
		files[APIDir+"/examples/cheapnodes/cheapnodes.go"] != nil {
		t.Errorf("the generated module has the wrong examples")
	}
}
