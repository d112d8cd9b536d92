package pack

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// someLock is a lock of two platforms with two plugins.
func someLock() *lock {
	return &lock{
		APIVersion: lockAPIVersion, Kind: lockKind, PMKSched: "v0.1.0", Release: "v1.24.3", Source: "modules", Go: "1.18.3",
		Base: "docker.io/library/busybox@sha256:" + strings.Repeat("ba", 32),
		Plugins: []lockedPlugin{
			{Name: "BlockAll", Origin: "builtin:blockall", SHA256: strings.Repeat("01", 32)},
			{Name: "QuietHours", Origin: "dir quiethours", SHA256: strings.Repeat("02", 32)},
		},
		Imports: []string{"example.com/scheme"},
		Binaries: []lockedBinary{
			{Platform: "linux/amd64", SHA256: strings.Repeat("03", 32)}, {Platform: "linux/arm64",
				SHA256: strings.Repeat("04", 32)},
		},
		Modules: []string{"example.com/a v1.0.0 h1:a=", "example.com/local v0.0.0", "k8s.io/kubernetes v1.24.3 h1:k="},
	}
}

func TestLockIsReadAsItIsWritten(t *testing.T) {
	text, err := someLock().marshal()
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/pmk-sched.lock", text)
	read, err := parseLock("pmk-sched.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someLock(), read); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestFileThatIsNotALockIsRefused(t *testing.T) {
	for _, text := range []string{"", "release: v1.24.3", "apiVersion: pmk-sched.io/v1alpha1\nkind: Lock\nunknown: 1\n",
		"{"} {
		if _, err := parseLock("x.lock", []byte(text)); !problem.IsInvalid(err) {
			t.Errorf("%q: got %v, want an error about the file", text, err)
		}
	}
	if _, err := readLock(filepath.Join(t.TempDir(), "none.lock")); !problem.IsInvalid(err) ||
		len(problem.Hints(err)) == 0 {
		t.Errorf("a missing file: %v", err)
	}
}

func TestDifferencesFromALock(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*lock)
		want   []string
	}{
		"none":              {func(*lock) {}, nil},
		"another pmk-sched": {func(l *lock) { l.PMKSched = "v0.2.0" }, nil},
		"the program alone": {func(l *lock) { l.Base = "" }, nil},
		"go":                {func(l *lock) { l.Go = "1.18.10" }, []string{"go: locked 1.18.3, got 1.18.10"}},
		"chosen go":         {func(l *lock) { l.GoChosen = true }, []string{"go: locked 1.18.3, got 1.18.3 (--go)"}},
		"base": {func(l *lock) { l.Base = "sha256:1" },
			[]string{"base: locked " + someLock().Base + ", got sha256:1"}},
		"sources of a plugin": {func(l *lock) { l.Plugins[1].SHA256 = "x" },
			[]string{"plugin QuietHours (dir quiethours): its sources have changed"}},
		"another plugin": {
			func(l *lock) { l.Plugins = append(l.Plugins, lockedPlugin{Name: "New", Origin: "dir new"}) },
			[]string{"plugin New (dir new): not locked"}},
		"no plugin": {func(l *lock) { l.Plugins = l.Plugins[:1] },
			[]string{"plugin QuietHours (dir quiethours): locked, but not built"}},
		"a plugin from another place": {func(l *lock) { l.Plugins[0].Origin = "dir x" },
			[]string{"plugin BlockAll: locked from builtin:blockall, got it from dir x"}},
		"imports": {func(l *lock) { l.Imports = nil },
			[]string{"imports: locked example.com/scheme, got none"}},
		"modules": {
			func(l *lock) { l.Modules = []string{"example.com/a v1.1.0 h1:b=", "example.com/local v0.0.0"} },
			[]string{"module example.com/a: locked v1.0.0 h1:a=, got v1.1.0 h1:b=",
				"module k8s.io/kubernetes: locked v1.24.3 h1:k=, got none"},
		},
		"platform": {func(l *lock) { l.Binaries = l.Binaries[:1] },
			[]string{"binary linux/arm64: locked, but not built"}},
		"new platform": {func(l *lock) { l.Binaries = append(l.Binaries, lockedBinary{"linux/s390x", "x"}) },
			[]string{"binary linux/s390x: not locked"}},
		"binary of another pmk-sched": {
			func(l *lock) { l.Binaries[0].SHA256, l.PMKSched = "x", "v0.2.0" },
			[]string{"binary linux/amd64: locked sha256 " + strings.Repeat("03", 32) + ", got x",
				"pmk-sched: locked v0.1.0, got v0.2.0"},
		},
		"release and commit": {
			func(l *lock) { l.Release, l.Source, l.Commit = "v1.24.4", "git:x", "abc" },
			[]string{"release: locked v1.24.3, got v1.24.4", "source: locked modules, got git:x",
				"commit: locked none, got abc"},
		},
	} {
		built := someLock()
		tt.change(built)
		if diff := cmp.Diff(tt.want, someLock().differences(built)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestManyModulesThatDifferAreCounted(t *testing.T) {
	built := someLock()
	for _, letter := range "abcdefghijklmnop" {
		built.Modules = append(built.Modules, "example.org/"+string(letter)+" v1.0.0")
	}
	got := someLock().differences(built)
	if len(got) != maxModules+1 || got[maxModules] != "and 6 more modules" {
		t.Errorf("got %q", got)
	}
}

func TestLockOfABuildIsSorted(t *testing.T) {
	program, err := os.Executable() // any program of Go
	if err != nil {
		t.Fatal(err)
	}
	built := &build.Result{
		Info: build.Info{Release: "v1.24.3", Source: "modules", Go: "1.18.3",
			Plugins: []plugins.Info{{Name: "Z", Origin: "dir z", SHA256: "2"}, {Name: "A", Origin: "dir a", SHA256: "1"}}},
		Binaries: []build.Binary{
			{Program: build.KubeScheduler, Platform: build.Platform{OS: "linux", Arch: "arm64"}, Path: program, SHA256: "b"},
			{Program: build.KubeScheduler, Platform: build.Platform{OS: "linux", Arch: "amd64"}, Path: program, SHA256: "a"},
		},
	}
	l, err := newLock("v0.1.0", built)
	if err != nil {
		t.Fatal(err)
	}
	if l.Plugins[0].Name != "A" || l.Binaries[0].Platform != "linux/amd64" || !slices.IsSorted(l.Modules) ||
		len(slices.Compact(slices.Clone(l.Modules))) != len(l.Modules) {
		t.Errorf("not sorted: %+v", l)
	}
}

// A rebuild takes the version of Go that the request leaves open from the lock, if it was chosen.
func TestLockFixesAnOpenVersionOfGo(t *testing.T) {
	for _, tt := range []struct {
		chosen      bool
		asked, want string
	}{
		{true, build.NewestGo, "1.18.3"}, {true, "1.18", "1.18.3"}, {true, "1.17", "1.17"}, {true, "", ""},
		{true, "1.18.10", "1.18.10"}, {false, build.NewestGo, build.NewestGo},
	} {
		l := someLock()
		l.GoChosen = tt.chosen
		file := filepath.Join(t.TempDir(), "pmk-sched.lock")
		if err := l.write(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		r := Request{Branch: "v1.24.3", Go: tt.asked, Locked: file}
		if _, err := newLocking(&r); err != nil || r.Go != tt.want {
			t.Errorf("chosen %v, --go %q: got %q, %v, want %q", tt.chosen, tt.asked, r.Go, err, tt.want)
		}
	}
}

func TestImageIsBuiltAgainWithTheChosenGo(t *testing.T) {
	l := someLock()
	l.Plugins = l.Plugins[:1]
	for chosen, want := range map[bool]string{false: "", true: "1.18.3"} {
		l.GoChosen = chosen
		if r, err := l.request(ImageRequest{}); err != nil || r.Go != want {
			t.Errorf("chosen %v: got %q, %v, want %q", chosen, r.Go, err, want)
		}
	}
}

// A rebuild takes the minor release and the digests that the request leaves open from the lock.
func TestLockFixesWhatTheRequestLeavesOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pmk-sched.lock")
	if err := someLock().write(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	locked := someLock().Base
	for _, tt := range []struct{ branch, base, wantBranch, wantBase string }{
		{"v1.24", "busybox", "v1.24.3", locked},
		{"release-1.24", "docker.io/library/busybox:1.36", "v1.24.3", locked},
		{"1.25", "registry.example.com/busybox", "1.25", "registry.example.com/busybox"},
		{"v1.24.9", "busybox@sha256:" + strings.Repeat("cd", 32), "v1.24.9", "busybox@sha256:" + strings.Repeat("cd", 32)},
		{BranchAuto, "", BranchAuto, ""},
	} {
		r := Request{Branch: tt.branch, Base: image.Base{Reference: tt.base}, Locked: file}
		if _, err := newLocking(&r); err != nil || r.Branch != tt.wantBranch || r.Base.Reference != tt.wantBase {
			t.Errorf("%s on %s: got %s on %s, %v", tt.branch, tt.base, r.Branch, r.Base.Reference, err)
		}
	}
}

func TestBuildThatDiffersFromItsLockFails(t *testing.T) {
	built := someLock()
	built.Plugins[1].SHA256 = "x"
	l := &locking{lockedFile: "pmk-sched.lock", locked: someLock(), built: built}
	err := l.compare()
	var differs *LockedError
	if !errors.As(err, &differs) || !differs.CheckFailed() ||
		!strings.Contains(err.Error(), "the build differs from pmk-sched.lock:\n  plugin QuietHours") {
		t.Errorf("got %v", err)
	}
	l.built = someLock()
	if err := l.checkBase(&image.Built{BaseDigest: "sha256:other"}); !errors.As(err, &differs) {
		t.Errorf("another base: %v", err)
	}
	if err := l.checkBase(&image.Built{Base: someLock().Base, BaseDigest: "sha256:other"}); err != nil {
		t.Errorf("the same base: %v", err)
	}
}
