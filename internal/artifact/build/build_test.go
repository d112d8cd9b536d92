package build

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

const testRelease = "v1.24.3"

// options returns the options of a build from p's modules, with a separate cache.
func (p *proxy) options(t *testing.T) Options {
	t.Helper()
	return Options{Release: mustRelease(t, testRelease),
		Environment: Environment{CacheDir: t.TempDir(), Env: p.environment(t)}}
}

// mustJob returns a job with a new build cache.
func mustJob(t *testing.T, e Environment) *job {
	t.Helper()
	e.CacheDir = t.TempDir()
	j, err := newJob(e)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func mustRun(t *testing.T, o Options) *Result {
	t.Helper()
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// mustFail runs a build that fails, and sees to it that nothing is left of it.
func mustFail(t *testing.T, o Options) *Error {
	t.Helper()
	_, err := Run(t.Context(), o)
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("Run: got %v, want an *Error", err)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
	return failed
}

// mustRefuse runs a build that fails because the input is invalid.
func mustRefuse(t *testing.T, o Options) error {
	t.Helper()
	_, err := Run(t.Context(), o)
	if !problem.IsInvalid(err) {
		t.Fatalf("Run: got %v, want an error about the input", err)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
	return err
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, entry.Name()))
	}
}

func output(t *testing.T, binary string, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRunBuildsTheSchedulerOfTheRelease(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	var steps []string
	o.OnStep = func(name string) func(error) { steps = append(steps, name); return nil }

	result := mustRun(t, o)

	binary, found := result.Binary(KubeScheduler, Host())
	if !found {
		t.Fatalf("no kube-scheduler for %s in %+v", Host(), result.Binaries)
	}
	stamped := "v1.24.3 1 24 unknown archive 2022-07-13T14:21:56Z\n"
	if diff := cmp.Diff(stamped+stamped+"third v1.1.0\n", output(t, binary.Path)); diff != "" {
		t.Errorf("what the binary says of itself (-want +got):\n%s", diff)
	}
	want := Info{
		Release: testRelease, Go: localGo(), GoNamed: localGo(), GoDirective: "1.24.0",
		Module: "k8s.io/kubernetes@v1.24.3", Source: "modules", Date: "2022-07-13T14:21:56Z",
		Modules: []ModuleVersion{
			{"example.com/third", "v1.1.0"}, {"k8s.io/client-go", "v0.24.3"},
			{"k8s.io/component-base", "v0.24.3"}, {"k8s.io/kubernetes", "v1.24.3"},
		},
		Inputs: binary.Inputs,
	}
	if diff := cmp.Diff(want, result.Info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	sums, err := ModuleSums(binary.Path)
	if err != nil || len(sums) != len(want.Modules) {
		t.Errorf("sums of the modules: %+v, %v", sums, err)
	}
	for i, m := range sums {
		if m.ModuleVersion != want.Modules[i] || !strings.HasPrefix(m.Sum, "h1:") {
			t.Errorf("module %+v, want %+v with a sum", m, want.Modules[i])
		}
	}
	if len(steps) != 5 {
		t.Errorf("steps: got %q, want read, fetch, resolve, compile, check", steps)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestSameInputsGiveTheSameBytesInTwoDirectories(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	one, two := p.options(t), p.options(t)
	one.CacheDir, two.CacheDir = filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "elsewhere", "b")
	// Nothing that the first build compiled may serve the second.
	two.Env = append(two.Env, "GOCACHE="+t.TempDir())

	a, b := mustRun(t, one), mustRun(t, two)

	if diff := cmp.Diff(a.Info, b.Info); diff != "" {
		t.Errorf("info differs (-one +two):\n%s", diff)
	}
	if a.Binaries[0].SHA256 != b.Binaries[0].SHA256 {
		t.Errorf("bytes differ: %s and %s", a.Binaries[0].SHA256, b.Binaries[0].SHA256)
	}
	if b.Cached {
		t.Error("the second build was not compiled at all")
	}
	mustBeEmpty(t, newCache(one.CacheDir).temporary())
	mustBeEmpty(t, newCache(two.CacheDir).temporary())
}

func TestSecondBuildNeedsNeitherGoNorNetwork(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	first := mustRun(t, o)
	o.Env = []string{}

	second := mustRun(t, o)

	if !second.Cached || first.Cached {
		t.Errorf("cached: got %v and %v, want false and true", first.Cached, second.Cached)
	}
	second.Cached = false
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("results differ (-first +second):\n%s", diff)
	}
}

func TestProgramsAndPlatformsAreBuiltOfOneModuleEach(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	alone := mustRun(t, o)
	o.Programs = []Program{{Name: KubeScheduler}, {Name: "kube-proxy"}, {Name: "kubectl"}}

	result := mustRun(t, o)

	if len(result.Binaries) != 3 || result.Binaries[0].SHA256 != alone.Binaries[0].SHA256 {
		t.Fatalf("binaries: got %+v, want three, of which the first is %+v", result.Binaries, alone.Binaries[0])
	}
	if got := output(t, result.Binaries[1].Path, "--version"); got != "Kubernetes v1.24.3\n" {
		t.Errorf("kube-proxy --version: got %q", got)
	}
	if result.Info.Inputs == alone.Info.Inputs {
		t.Error("three binaries have the inputs of one")
	}
}

func TestKeepLeavesAModuleThatCompilesByHand(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	o.Keep = true

	for _, cached := range []bool{false, true} {
		result := mustRun(t, o)
		if result.Cached != cached {
			t.Errorf("cached: got %v, want %v", result.Cached, cached)
		}
		for _, name := range []string{"go.mod", "go.sum", mainFile} {
			if _, err := os.Stat(filepath.Join(result.Dir, name)); err != nil {
				t.Errorf("kept module: %v", err)
			}
		}
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestUserSettingsDoNotChangeTheResult(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	plain := mustRun(t, p.options(t))

	o := p.options(t)
	written := filepath.Join(t.TempDir(), "env")
	settings := "GOPROXY=" + p.url +
		"\nGOSUMDB=off\nGOFLAGS=-mod=vendor -tags=theirs -nosuchflag -modcacherw\nGOARCH=arm\nCGO_ENABLED=1\n"
	if err := os.WriteFile(written, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Env = slices.DeleteFunc(o.Env, func(v string) bool {
		return strings.HasPrefix(v, "GOPROXY=") || strings.HasPrefix(v, "GOSUMDB=") || strings.HasPrefix(v, "GOFLAGS=")
	})
	o.Env = append(o.Env, "GOENV="+written, "GOWORK=/nowhere/go.work", "GOOS=plan9", "GOARCH=mips",
		"GOTOOLCHAIN=go1.1", "GO111MODULE=off", "GOAMD64=v3", "GODEBUG=madvdontneed=1", "CGO_ENABLED=1", "CC=/nowhere/cc")

	hostile := mustRun(t, o)

	if diff := cmp.Diff(plain.Info, hostile.Info); diff != "" {
		t.Errorf("info differs (-plain +hostile):\n%s", diff)
	}
	if plain.Binaries[0].SHA256 != hostile.Binaries[0].SHA256 {
		t.Error("the bytes differ")
	}
}

func TestConcurrentBuildsGiveTheSameResult(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	var group sync.WaitGroup
	results, errs := make([]*Result, 3), make([]error, 3)
	for i := range results {
		group.Go(func() { results[i], errs[i] = Run(t.Context(), o) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, result := range results[1:] {
		if diff := cmp.Diff(results[0].Binaries, result.Binaries); diff != "" {
			t.Errorf("binaries differ:\n%s", diff)
		}
	}
	_, sum, err := HashFile(results[0].Binaries[0].Path)
	if err != nil || sum != results[0].Binaries[0].SHA256 {
		t.Errorf("stored binary: got %s, %v, want %s", sum, err, results[0].Binaries[0].SHA256)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestAnotherPatchOfGoReplacesOneThatDoesNotDownload(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{"k8s.io/kubernetes/.go-version": minorOf(localGo()) + ".99\n"})
	o := p.options(t)

	result := mustRun(t, o)

	if result.Info.Go != localGo() || result.Info.GoNamed != minorOf(localGo())+".99" {
		t.Errorf("Go: got %s for %s", result.Info.Go, result.Info.GoNamed)
	}
	if len(result.Info.Warnings) != 1 || !strings.Contains(result.Info.Warnings[0], "does not download") {
		t.Errorf("warnings: got %q", result.Info.Warnings)
	}
	if again := mustRun(t, o); !again.Cached {
		t.Error("the other version of Go was not remembered")
	}
}

func TestSourceOfAReleaseIsADirectory(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{"k8s.io/kubernetes/test/data.yaml": "data\n"})
	o := p.options(t).Environment
	dir, err := SourceDir(t.Context(), mustRelease(t, testRelease), o)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "test", "data.yaml")); err != nil || string(text) != "data\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := SourceDir(t.Context(), mustRelease(t, "v1.24.99"), o); err == nil {
		t.Error("a release that is not published has a directory")
	}
}

func TestSourceInfoReadsTheVersionOfGoOnce(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := Environment{CacheDir: t.TempDir(), Env: p.environment(t)}
	for _, env := range [][]string{o.Env, {}} {
		o.Env = env
		got, err := SourceInfo(t.Context(), mustRelease(t, testRelease), o)
		if err != nil || got != localGo() {
			t.Errorf("got %q, %v, want %q", got, err, localGo())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.asked, func(path string) bool { return strings.HasPrefix(path, "/k8s.io/client-go/") }) {
		t.Errorf("more was downloaded than the release: %q", p.asked)
	}
}
