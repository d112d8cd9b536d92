package build

import (
	"debug/buildinfo"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// oldRelease are files of a release that names an older version of Go than the test's, and has no
// defaults of GODEBUG of its own.
func oldRelease() map[string]string {
	return map[string]string{
		"k8s.io/kubernetes/.go-version": "1.20.7\n",
		"k8s.io/kubernetes/go.mod": "module k8s.io/kubernetes\n\ngo 1.19\n\nrequire (\n" +
			"\texample.com/third v1.0.0\n\tk8s.io/client-go v0.0.0\n\tk8s.io/component-base v0.0.0\n)\n\n" +
			"replace (\n\texample.com/third => example.com/third v1.1.0\n" +
			"\tk8s.io/client-go => ./staging/src/k8s.io/client-go\n" +
			"\tk8s.io/component-base => ./staging/src/k8s.io/component-base\n)\n",
		"k8s.io/client-go/go.mod":      "module k8s.io/client-go\n\ngo 1.19\n",
		"k8s.io/component-base/go.mod": "module k8s.io/component-base\n\ngo 1.19\n",
	}
}

func debugDefaults(t *testing.T, path string) []string {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.GoVersion != "go"+localGo() {
		t.Errorf("compiled with %s, want go%s", info.GoVersion, localGo())
	}
	for _, s := range info.Settings {
		if s.Key == "DefaultGODEBUG" {
			return strings.Split(s.Value, ",")
		}
	}
	return nil
}

func TestChosenGoCompilesWithTheDefaultsOfTheRelease(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, oldRelease())
	o := p.options(t)

	for _, asked := range []string{localGo(), minorOf(localGo()), NewestGo} {
		o.Go = asked
		result := mustRun(t, o)
		if result.Info.Go != localGo() || result.Info.GoNamed != "1.20.7" ||
			result.Info.GoDirective != "1.19" || !result.Info.GoChosen {
			t.Errorf("--go %s: info: %+v", asked, result.Info)
		}
		settings := debugDefaults(t, result.Binaries[0].Path)
		for _, want := range []string{"panicnil=1", "httpmuxgo121=1", "rsa1024min=0"} {
			if !slices.Contains(settings, want) {
				t.Errorf("--go %s: GODEBUG has the defaults %q, want %s", asked, settings, want)
			}
		}
	}
}

// A plugin that requires a newer language than the release raises the go line of the generated
// module, and not the defaults of GODEBUG.
func TestGodebugOfTheReleaseIsWrittenIntoTheModule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chosen  string
		source  source
		godebug []string
	}{
		"go line":            {"1.26.8", source{GoDirective: "1.16"}, []string{"default=go1.16"}},
		"go line of a patch": {"1.26.8", source{GoDirective: "1.22.0"}, []string{"default=go1.22"}},
		"other settings": {"1.26.8", source{GoDirective: "1.22.0", Godebug: []string{"winsymlink=0"}},
			[]string{"default=go1.22", "winsymlink=0"}},
		"defaults of the release": {"1.26.8", source{GoDirective: "1.24.0", Godebug: []string{"default=go1.23"}},
			[]string{"default=go1.23"}},
		"a Go without the directive": {"1.22.12", source{GoDirective: "1.16"}, nil},
		"the named Go":               {"", source{GoDirective: "1.16"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&toolchains{chosen: c.chosen}).adapt(c.source)
			if !slices.Equal(got.Godebug, c.godebug) {
				t.Errorf("got %q, want %q", got.Godebug, c.godebug)
			}
		})
	}
}

func TestChosenGoIsAnInputOfTheBinary(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	named := mustRun(t, o)
	o.Go = localGo()

	chosen := mustRun(t, o)
	again := mustRun(t, o)

	if chosen.Binaries[0].Inputs != named.Binaries[0].Inputs {
		t.Error("the same version of Go gives other inputs if it is chosen")
	}
	if !again.Cached {
		t.Error("the second build was compiled again")
	}
	k := &toolchains{chosen: "1.27.4"}
	other := recipe{info: Info{Go: k.recall(localGo()).Used}, files: map[string][]byte{}}
	this := recipe{info: Info{Go: localGo()}, files: map[string][]byte{}}
	a, errA := other.key(target{})
	b, errB := this.key(target{})
	if errA != nil || errB != nil || a == b {
		t.Errorf("two versions of Go have the same inputs %s: %v, %v", a, errA, errB)
	}
}

func TestNewestGoIsTheNewestStableOneForThisMachine(t *testing.T) {
	platform := "." + Host().String()
	platform = strings.ReplaceAll(platform, "/", "-")
	listed := []string{"v0.0.1-go1.26.9" + platform, "v0.0.1-go1.27.4" + platform, "v0.0.1-go1.28rc1" + platform,
		"v0.0.1-go1.27.5.plan9-arm", "v0.0.1-go1.26.10" + platform, "nonsense"}
	for _, c := range []struct {
		asked, local string
		listed, want []string
	}{
		{NewestGo, "1.26.8", listed, []string{"1.27.4", "1.26.10", "1.26.9", "1.26.8"}},
		{NewestGo, "1.27.6", listed, []string{"1.27.6", "1.27.4", "1.26.10", "1.26.9"}},
		{NewestGo, "1.28-devel", listed, []string{"1.27.4", "1.26.10", "1.26.9"}},
		{NewestGo, "1.26.8", nil, []string{"1.26.8"}},
		{"1.26", "1.26.8", listed, []string{"1.26.10", "1.26.9", "1.26.8"}},
		{"1.25", "1.26.8", listed, []string{}},
	} {
		if got := stableVersions(c.asked, c.local, c.listed); !slices.Equal(got, c.want) {
			t.Errorf("%s with the local Go %s: got %q, want %q", c.asked, c.local, got, c.want)
		}
	}
}

func TestGoThatCannotCompileTheReleaseIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	for asked, want := range map[string]string{
		"1.23.4": "--go 1.23.4: the release requires Go 1.24.0 or later",
		"1.23":   "--go 1.23: the release requires Go 1.24.0 or later",
		"1.98":   "--go 1.98: the module proxy lists no such version of Go",
		"latest": `invalid --go "latest"`,
		"go1.26": `invalid --go "go1.26"`,
	} {
		o.Go = asked
		if err := mustRefuse(t, o); !strings.Contains(err.Error(), want) {
			t.Errorf("--go %s: got %v, want %s", asked, err, want)
		}
	}
	o.Go = "1.98.1"
	p.fail(toolchainModule, "v0.0.1-go1.98.1."+Host().OS+"-"+Host().Arch, "zip", http.StatusNotFound)
	if failed := mustFail(t, o); !strings.Contains(failed.Error(), "1.98.1") {
		t.Errorf("--go 1.98.1: got %v", failed)
	}
}

func TestModulesThatNewerGoBreaksAreUpdated(t *testing.T) {
	const path = "github.com/modern-go/reflect2"
	pinned := func(version string) source {
		return source{GoDirective: "1.15", Pins: []pin{{Path: path, NewPath: path, NewVersion: version}}}
	}
	for name, c := range map[string]struct {
		chosen, has, want string
		warns             bool
	}{
		"broken":       {"1.26.8", "v1.0.1", "v1.0.2", true},
		"works":        {"1.26.8", "v1.0.2", "v1.0.2", false},
		"older Go":     {"1.17.13", "v1.0.1", "v1.0.1", false},
		"the named Go": {"", "v1.0.1", "v1.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := pinned(c.has)
			k := &toolchains{chosen: c.chosen}
			got := k.adapt(before)
			if got.Pins[0].NewVersion != c.want || before.Pins[0].NewVersion != c.has {
				t.Errorf("got %s, want %s; the source has %s", got.Pins[0].NewVersion, c.want, before.Pins[0].NewVersion)
			}
			if sums := strings.Contains(got.GoSum, path); sums != c.warns || len(got.Updated) > 0 != c.warns {
				t.Errorf("sums %q, updated %v", got.GoSum, got.Updated)
			}
			if warnings := k.chosenWarnings(got); len(warnings) > 0 != c.warns {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

func TestRemovedSettingsOfGodebugAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		directive, golang string
		want              int
	}{
		{"1.16", "1.27.4", 6}, {"1.22.0", "1.27.4", 3}, {"1.23.0", "1.27.4", 0}, {"1.16", "1.26.8", 0},
	} {
		k := &toolchains{chosen: c.golang}
		s := k.adapt(source{GoDirective: c.directive})
		if lost := lostSettings(debugVersion(s), c.golang); len(lost) != c.want {
			t.Errorf("go %s with Go %s: lost %q, want %d", c.directive, c.golang, lost, c.want)
		}
		if warnings := k.chosenWarnings(s); len(warnings) > 0 != (c.want > 0) {
			t.Errorf("go %s with Go %s: warnings %q", c.directive, c.golang, warnings)
		}
	}
}
