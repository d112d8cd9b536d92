//go:build adapters

package adapters

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/versions"
)

var update = flag.Bool("update", false, "write the transcript of the newest release to the golden file")

// releases has one release of each supported minor.
var releases = []string{
	"v1.37.1", "v1.36.3", "v1.35.4", "v1.34.2", "v1.33.13", "v1.32.2", "v1.31.0", "v1.30.14", "v1.29.2", "v1.28.15",
	"v1.27.3", "v1.26.3", "v1.25.4", "v1.24.3", "v1.23.17", "v1.22.2", "v1.21.3", "v1.20.15",
}

// chosen returns the releases in the environment variable RELEASE, which need not be in the tables,
// or else all.
func chosen() []string {
	if chosen := strings.Fields(os.Getenv("RELEASE")); len(chosen) > 0 {
		return chosen
	}
	return releases
}

const golden = "testdata/transcript.txt"

func TestPluginBehavesTheSameOnEveryRelease(t *testing.T) {
	for _, release := range chosen() {
		t.Run(release, func(t *testing.T) {
			got := transcript(t, release)
			if *update && release == releases[0] {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-every release +%s)\n%s", release, diff)
			}
		})
	}
}

func TestRequestsOfPodsAreThoseOfTheRelease(t *testing.T) {
	for _, release := range chosen() {
		t.Run(release, func(t *testing.T) { t.Log(drive(t, release, "TestRequests", "SEED="+os.Getenv("SEED"))) })
	}
}

// transcript returns the calls of the probe by the framework of a release.
func transcript(t *testing.T, release string) string {
	file := filepath.Join(t.TempDir(), "transcript.txt")
	drive(t, release, "TestTranscript", "TRANSCRIPT="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drive builds the scheduler of a release with the probe, runs a test of the driver in its main
// package, and returns the output.
func drive(t *testing.T, name, test string, env ...string) string {
	release, err := versions.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	rules := release.Rules() // RELEASE may have no rows yet
	selected := append(bundled(t), plugins.Plugin{Dir: absolute(t, "probes/probe")})
	if release.Minor >= 26 {
		selected = append(selected, plugins.Plugin{Dir: absolute(t, "probes/gate")})
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	result, err := build.Run(context.Background(), build.Options{
		Release: release, Plugins: selected, Sources: pmksched.Sources,
		Keep: true, Environment: build.Environment{
			CacheDir: filepath.Join(cache, "pmk-sched"), Env: os.Environ(),
			OnStep: func(step string) func(error) { return func(err error) { t.Log(step, err) } },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(result.Dir); err != nil {
			t.Error(err)
		}
	})
	writeDriver(t, release.Minor, filepath.Join(result.Dir, "cmd/kube-scheduler"))
	// The flags equal the flags of the build, so that the test uses its compiled packages.
	cmd := exec.Command("go", "test", "-v", "-vet=off", "-count=1", "-trimpath",
		"-tags", strings.Join(rules.BuildTags, ","), "-ldflags", "-s -w", "-run", "^"+test+"$", "./cmd/kube-scheduler")
	cmd.Dir = result.Dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+result.Info.Go, "GOFLAGS=-mod=mod", "CGO_ENABLED=0",
		"POINTS="+points(t, release.Minor), "MINOR="+strconv.Itoa(release.Minor))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// bundled returns the bundled plugins, which must compile with every release, too.
func bundled(t *testing.T) []plugins.Plugin {
	entries, err := pmksched.Sources.ReadDir("scheduler/plugins")
	if err != nil {
		t.Fatal(err)
	}
	var all []plugins.Plugin
	for _, e := range entries {
		all = append(all, plugins.Plugin{Builtin: e.Name()})
	}
	return all
}

// points returns the extension points to enable for the probe, as in a configuration without
// multiPoint.
func points(t *testing.T, minor int) string {
	var methods []string
	for _, p := range plugins.Points() {
		if p.Name != "PreEnqueue" {
			methods = append(append(methods, p.Methods...), p.Optional...)
		}
	}
	composed, err := plugins.Compose(minor, methods)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(composed.Points, ",")
}

// writeDriver writes the driver's files for a minor to the directory of the generated main package.
func writeDriver(t *testing.T, minor int, dir string) {
	files := os.DirFS("testdata/driver")
	names, err := fs.Glob(files, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range plugins.AdapterFiles(minor, names) {
		source, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".go")+"_test.go"), plugins.AdapterSource(source),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func absolute(t *testing.T, dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
