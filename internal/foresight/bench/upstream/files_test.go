package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/versions"
)

// writeFiles writes files below a new directory.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	smallCases = "- {name: Basic, workloads: [{name: small, labels: [short]}]}\n"
	ownConfig  = "- {name: Basic, schedulerConfigPath: own.yaml, workloads: [{name: small, labels: [short]}]}\n"
	calls      = `perf.RunBenchmarkPerfScheduling(b, "performance-config.yaml", "%s", nil)`
)

func TestTopicsOfAReleaseAreRead(t *testing.T) {
	t.Parallel()
	topics := map[string]string{
		"misc/performance-config.yaml":  smallCases,
		"misc/misc_test.go":             strings.Replace(calls, "%s", "misc", 1),
		"a/tas/performance-config.yaml": smallCases,
		"a/tas/tas_test.go":             strings.Replace(strings.Replace(calls, "%s", "tas", 1), "nil", "nil, perf.With(1)", 1),
		"b/performance-config.yaml":     smallCases,
	}
	for release, c := range map[string]struct {
		files map[string]string
		want  []string
		notes int
	}{
		"v1.34.2":  {topics, []string{"misc Basic/small misc"}, 2},
		"v1.30.14": {map[string]string{"config/performance-config.yaml": smallCases}, []string{". Basic/small "}, 0},
	} {
		parsed, err := versions.Parse(release)
		if err != nil {
			t.Fatal(err)
		}
		h := harness{release: parsed, source: writeFiles(t, c.files)}
		runs, notes, err := h.selectRuns("short")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, r.dir+" "+r.name()+" "+r.topic)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(notes) != c.notes {
			t.Errorf("%s: notes %q (-want +got):\n%s", release, notes, diff)
		}
		if _, _, err := h.selectRuns("long"); err == nil || !strings.Contains(err.Error(), "no workload with the labels") {
			t.Errorf("%s: other labels: got %v", release, err)
		}
	}
}

func TestWorkloadsAreCopiedWithTheConfiguration(t *testing.T) {
	t.Parallel()
	source := writeFiles(t, map[string]string{
		"misc/performance-config.yaml": smallCases, "own/performance-config.yaml": ownConfig,
		"misc/templates/pod.yaml": "kind: Pod\n", "misc/misc_test.go": "package misc\n",
	})
	for _, configuration := range []string{"", "kind: KubeSchedulerConfiguration\n"} {
		side := harnessSide{dir: t.TempDir()}
		var given []byte
		if configuration != "" {
			given = []byte(configuration)
		}
		if err := side.copyWorkloads(source, given); err != nil {
			t.Fatal(err)
		}
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(side.dir, name))
			if err != nil {
				return err.Error()
			}
			return string(text)
		}
		if got := read("misc/templates/pod.yaml"); got != "kind: Pod\n" {
			t.Errorf("template: got %s", got)
		}
		if _, err := os.Stat(filepath.Join(side.dir, "misc/misc_test.go")); err == nil {
			t.Error("source is copied")
		}
		got := read("misc/performance-config.yaml")
		switch _, path, found := strings.Cut(strings.TrimRight(got, "}\n"), "schedulerConfigPath: "); {
		case configuration == "" && got != smallCases:
			t.Errorf("without a configuration: got %s", got)
		case configuration != "" && (!found || read(filepath.Base(path)) != configuration):
			t.Errorf("with a configuration: got %s", got)
		}
		if got := read("own/performance-config.yaml"); !strings.Contains(got, "schedulerConfigPath: own.yaml") {
			t.Errorf("a test case with a configuration: got %s", got)
		}
	}
}
