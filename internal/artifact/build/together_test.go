package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
)

// three are programs of the fake Kubernetes.
var three = []Program{{Name: KubeScheduler}, {Name: "kube-proxy"}, {Name: "kubectl"}}

func TestProgramsAreCompiledByOneGoCommand(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	var alone []string
	for _, program := range three {
		o := p.options(t)
		o.Programs = []Program{program}
		alone = append(alone, mustRun(t, o).Binaries[0].SHA256)
	}
	o := p.options(t)
	o.Programs, o.Platforms = three, []Platform{Host(), Host()}
	builds := filepath.Join(t.TempDir(), "builds")
	o.Env = wrapGo(t, o.Env, "echo build >> "+builds)
	var compiled []string
	o.OnStep = func(name string) func(error) {
		if strings.HasPrefix(name, "compile ") {
			compiled = append(compiled, name)
		}
		return nil
	}

	result := mustRun(t, o)

	var together []string
	for _, b := range result.Binaries[:3] {
		together = append(together, b.SHA256)
	}
	if diff := cmp.Diff(alone, together); diff != "" {
		t.Errorf("SHA-256 of the programs (-alone +together):\n%s", diff)
	}
	if text, err := os.ReadFile(builds); err != nil || string(text) != "build\n" {
		t.Errorf("runs of go build: got %q, %v, want one", text, err)
	}
	step := "compile kube-scheduler, kube-proxy, kubectl for " + Host().String()
	if diff := cmp.Diff([]string{step}, compiled); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestErrorIsAboutTheProgramThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/cmd/kube-proxy/proxy.go": "package main\n\nfunc main() { undefined() }\n",
	})
	o := p.options(t)
	o.Programs = three

	failed := mustFail(t, o)

	if want := "compile kube-proxy for " + Host().String(); failed.Step != want || failed.Cause != CauseCompile {
		t.Errorf("got cause %s of step %q, want %s of %q", failed.Cause, failed.Step, CauseCompile, want)
	}
	lines := strings.Split(failed.Output, "\n")
	if len(lines) != 2 || lines[0] != "# k8s.io/kubernetes/cmd/kube-proxy" ||
		!strings.Contains(lines[1], "undefined: undefined") {
		t.Errorf("output: got %q, want the compiler's lines, once", lines)
	}
	o.Programs = three[:1]
	if result := mustRun(t, o); !result.Cached {
		t.Error("the program before it is not in the cache")
	}
}

// Two builds with the same programs in another order would otherwise wait for each other.
func TestLocksAreTakenInTheOrderOfTheirKeys(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	onStep := func(string) func(error) { close(waits); return nil }
	c := mustJob(t, Environment{OnStep: onStep}).compiler
	first, second := target{key: "a", Program: Program{Name: "first"}}, target{key: "b", Program: Program{Name: "second"}}
	other, err := c.acquire(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.acquireAll(ctx, []target{second, first})
		done <- err
	}()
	late := time.After(time.Minute)
	select {
	case <-waits:
	case err := <-done:
		t.Fatalf("it does not wait for the second lock: %v", err)
	case <-late:
		t.Fatal("it does not report that it waits")
	}
	isFree := func() bool {
		t.Helper()
		file, err := c.cache.openLock(first.key)
		if err != nil {
			t.Fatal(err)
		}
		locked, err := safeio.TryLock(file)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		return locked
	}
	if isFree() {
		t.Error("the second lock is waited for before the first is held")
	}
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was canceled", err)
		}
	case <-late:
		t.Fatal("the wait for the second lock does not end when it is canceled")
	}
	if !isFree() {
		t.Error("the first lock is held after the wait for the second was canceled")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCompiledPackagesAreCounted(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	// No earlier run of this test compiled this package.
	p.release(t, testRelease, map[string]string{
		"k8s.io/component-base/version/unique.go": fmt.Sprintf("package version\n\nconst u = %d\n", time.Now().UnixNano()),
	})
	o := p.options(t)
	var texts []string
	ctx := steps.WithProgress(t.Context(), func(text string) { texts = append(texts, text) })

	if _, err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}

	if len(texts) < 2 {
		t.Fatalf("progress: got %q, want at least two packages", texts)
	}
	for i, text := range texts {
		if want := fmt.Sprintf("compile kube-scheduler v1.24.3: %d of ", i+1); !strings.HasPrefix(text, want) {
			t.Errorf("progress %d: got %q, want %q…", i, text, want)
		}
	}
	texts = nil
	o.CacheDir = t.TempDir() // Go's own cache still contains the packages
	if _, err := Run(ctx, o); err != nil || len(texts) > 0 {
		t.Errorf("compiled packages: got %q, %v, want none", texts, err)
	}
}

func TestProgressHasCountsAndAnEstimate(t *testing.T) {
	packages := map[string]int64{"fmt": 0}
	for i := range 1903 {
		packages[fmt.Sprintf("example.com/p%d", i)] = 1000
	}
	large := maps.Clone(packages) // as large as all others
	large["example.com/p1902"] = 1902 * 1000
	r := &recipe{info: Info{Release: testRelease}}
	targets := []target{{Program: Program{Name: "kubelet"}}, {Program: Program{Name: "kubectl"}}}
	for name, test := range map[string]struct {
		targets []target
		sizes   map[string]int64
		done    int
		spent   time.Duration
		want    string
	}{
		"start": {targets[:1], packages, 1, 0, "compile kubelet v1.24.3: 1 of 1,903 packages"},
		"seconds": {targets[:1], packages, 1800, 10 * time.Minute,
			"compile kubelet v1.24.3: 1,800 of 1,903 packages, about 30 s left"},
		"minutes": {targets, packages, 412, 30 * time.Second,
			"compile kubelet, … v1.24.3: 412 of 1,903 packages, about 2 min left"},
		"every package": {targets, packages, 1903, 2 * time.Minute,
			"compile kubelet, … v1.24.3: 1,903 of 1,903 packages, linking"},
		"large package": {
			targets, large, 1902, 2 * time.Minute,
			"compile kubelet, … v1.24.3: 1,902 of 1,903 packages, about 2 min left",
		},
		"almost at once": {targets, packages, 1902, time.Minute,
			"compile kubelet, … v1.24.3: 1,902 of 1,903 packages, about 10 s left"},
	} {
		t.Run(name, func(t *testing.T) {
			var last string
			ctx := steps.WithProgress(t.Context(), func(text string) { last = text })
			p := newProgress(ctx, r, test.targets, test.sizes)
			p.started = time.Now().Add(-test.spent)
			for i := range test.done {
				for range 2 { // counted once
					if path := fmt.Sprintf("example.com/p%d", i); !p.drop(path) || !p.drop("fmt") {
						t.Fatalf("package %s is a line of the compiler", path)
					}
				}
			}
			if last != test.want {
				t.Errorf("got %q, want %q", last, test.want)
			}
			if p.drop("# example.com/p0") {
				t.Error("a line of the compiler is dropped")
			}
		})
	}
}

func TestCompilersUseMemoryThatTheMachineHas(t *testing.T) {
	for name, test := range map[string]struct {
		env        []string
		golang     string
		available  int64
		processors int
		want       []string
	}{
		"much memory":           {nil, "1.18.10", 8 << 30, 2, []string{"GOGC=800"}},
		"little memory":         {nil, "1.18.10", 8<<30 - 1, 2, nil},
		"many processors":       {nil, "1.18.10", 31 << 30, 16, nil},
		"memory for each":       {nil, "1.19.13", 32 << 30, 16, []string{"GOGC=800"}},
		"compiler that adjusts": {nil, "1.20.1", 32 << 30, 2, nil},
		"user's value":          {[]string{"GOGC=50"}, "1.18.10", 8 << 30, 2, []string{"GOGC=50"}},
		"little, user's":        {[]string{"GOGC=50"}, "1.26.0", 0, 2, []string{"GOGC=50"}},
	} {
		got := garbageCollection(test.env, test.golang, test.available, test.processors)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	file := filepath.Join(t.TempDir(), "meminfo")
	write(t, file, "MemTotal:       24689504 kB\nMemFree:        16253128 kB\nMemAvailable:   22020096 kB\n")
	if got := memAvailable(file); got != 21<<30 {
		t.Errorf("available memory: got %d, want %d", got, int64(21<<30))
	}
	if got := memAvailable(file + "none"); got != 0 {
		t.Errorf("available memory of an unknown system: got %d, want 0", got)
	}
}
