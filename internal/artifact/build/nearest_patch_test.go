package build

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/versions"
)

// lacks makes the proxy list a module of a release, but not serve its source. Most modules that are
// unavailable at public module proxies fail in this way.
func (p *proxy) lacks(release, path string) {
	p.fail(path, "v0"+strings.TrimPrefix(release, "v1"), "zip", http.StatusForbidden)
}

func TestMissingModuleIsNamedWithTheNearestPatchThatHasIt(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	for _, release := range []string{testRelease, "v1.24.4", "v1.24.5", "v1.24.8"} {
		p.release(t, release, nil)
	}
	p.lacks(testRelease, "k8s.io/client-go")
	p.lacks("v1.24.4", "k8s.io/client-go")

	failed := mustFail(t, p.options(t))

	if failed.Cause != CauseModuleMissing || failed.Invalid() ||
		!slices.Equal(failed.Modules, []string{"k8s.io/client-go@v0.24.3"}) {
		t.Errorf("got %s, modules %q from: %v", failed.Cause, failed.Modules, failed)
	}
	if want := "v1.24.5 is the nearest patch that has k8s.io/client-go: --branch v1.24.5, or --nearest"; failed.Hint() != want {
		t.Errorf("hint: got %q, want %q", failed.Hint(), want)
	}
}

func TestNearestPatchIsBuilt(t *testing.T) {
	tests := map[string]struct {
		served []string
		// lacking are modules of releases: "v1.24.3 k8s.io/client-go".
		lacking []string
		want    string
		warns   string
	}{
		"older before newer at the same distance": {
			served: []string{testRelease, "v1.24.2", "v1.24.4"}, lacking: []string{testRelease + " k8s.io/client-go"},
			want: "v1.24.2", warns: "k8s.io/client-go@v0.24.3 is unavailable",
		},
		"one that lacks the same is passed over": {
			served: []string{testRelease, "v1.24.2", "v1.24.4"}, lacking: []string{testRelease + " k8s.io/client-go",
				"v1.24.2 k8s.io/client-go"},
			want: "v1.24.4", warns: "k8s.io/client-go@v0.24.3 is unavailable",
		},
		"one that lacks another is tried and left": {
			served: []string{testRelease, "v1.24.2", "v1.24.4", "v1.24.5"}, lacking: []string{
				testRelease + " k8s.io/client-go", "v1.24.2 k8s.io/component-base", "v1.24.4 k8s.io/client-go",
			},
			want: "v1.24.5", warns: "k8s.io/client-go@v0.24.3 is unavailable",
		},
		"what the scheduler does not need may lack": {
			served: []string{testRelease, "v1.24.2"}, lacking: []string{testRelease + " k8s.io/client-go",
				"v1.24.2 k8s.io/kubectl"},
			want: "v1.24.2", warns: "k8s.io/client-go@v0.24.3 is unavailable",
		},
		"the release itself is not served": {
			served: []string{"v1.24.17"}, want: "v1.24.17", warns: "k8s.io/kubernetes@v1.24.3 is unavailable",
		},
		"nothing lacks": {served: []string{testRelease, "v1.24.2"}, want: testRelease},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			for _, release := range test.served {
				p.release(t, release, nil)
			}
			for _, lacking := range test.lacking {
				release, path, _ := strings.Cut(lacking, " ")
				p.lacks(release, path)
			}
			o := p.options(t)
			o.Nearest = true

			result := mustRun(t, o)

			if result.Info.Release != test.want || (result.Info.Asked == testRelease) != (test.want != testRelease) {
				t.Errorf("built %s, asked for %q, want %s", result.Info.Release, result.Info.Asked, test.want)
			}
			if got := output(t, result.Binaries[0].Path, "--version"); got != "Kubernetes "+test.want+"\n" {
				t.Errorf("--version: got %q", got)
			}
			if test.warns == "" {
				if len(result.Info.Warnings) != 0 {
					t.Errorf("warnings: got %q", result.Info.Warnings)
				}
				return
			}
			if first := result.Info.Warnings[0]; !strings.HasPrefix(first, test.want+" is built instead of v1.24.3") ||
				!strings.Contains(first, test.warns) ||
				!strings.Contains(first, "detect still reports v1.24.3") {
				t.Errorf("warning: got %q, want %q in it", first, test.warns)
			}
			again := mustRun(t, o)
			if !again.Cached || again.Info.Asked != testRelease {
				t.Errorf("again: cached %v, asked for %q", again.Cached, again.Info.Asked)
			}
		})
	}
}

func TestMissingNearestPatchIsReported(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	for _, release := range []string{testRelease, "v1.24.2", "v1.25.4"} {
		p.release(t, release, nil)
	}
	p.lacks(testRelease, "k8s.io/client-go")
	p.lacks("v1.24.2", "k8s.io/component-base")
	o := p.options(t)
	o.Nearest = true

	failed := mustFail(t, o)

	if failed.Cause != CauseModuleMissing || !strings.Contains(failed.Error(), "k8s.io/client-go@v0.24.3") ||
		!strings.Contains(failed.Hint(), "no other patch of 1.24") {
		t.Errorf("got %v, hint %q", failed, failed.Hint())
	}
}

func TestOtherFailuresDoNotSearchForAnotherPatch(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/cmd/kube-scheduler/app/server.go": "package app\n\nfunc NewSchedulerCommand() nothing { return " +
			"1 }\n",
	})
	p.release(t, "v1.24.2", nil)
	o := p.options(t)
	o.Nearest = true

	if failed := mustFail(t, o); failed.Cause != CauseCompile {
		t.Errorf("got %s from: %v", failed.Cause, failed)
	}
}

func TestSearchForAnotherPatchCanBeCanceled(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	p.release(t, "v1.24.2", nil)
	p.lacks(testRelease, "k8s.io/client-go")
	o := p.options(t)
	o.Nearest = true
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.OnStep = func(name string) func(error) {
		if strings.HasPrefix(name, "find the patch nearest") {
			cancel(errors.New("interrupt"))
		}
		return nil
	}

	_, err := Run(ctx, o)

	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "find the patch nearest to v1.24.3: interrupt") {
		t.Errorf("got %v, want that the search was cancelled", err)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestNearbyPatchesAreOrderedAndLimited(t *testing.T) {
	for release, test := range map[string]struct{ listed, want string }{
		"v1.24.1": {"", "v1.24.0 v1.24.2 v1.24.3 v1.24.4 v1.24.5 v1.24.6 v1.24.7"},
		"v1.24.0": {"v1.24.17 v1.25.0 v1.24.1-rc.0 v1.24.9",
			"v1.24.1 v1.24.2 v1.24.3 v1.24.4 v1.24.5 v1.24.6 v1.24.9 v1.24.17"},
		"v1.27.16": {"v1.27.3 v1.27.1",
			"v1.27.15 v1.27.17 v1.27.14 v1.27.18 v1.27.13 v1.27.19 v1.27.12 v1.27.20 v1.27.11 v1.27.21 v1.27.10 v1.27.22 " +
				"v1.27.3"},
		"v1.37.0-rc.1": {"v1.37.0-rc.0", "v1.37.0 v1.37.1 v1.37.2 v1.37.3 v1.37.4 v1.37.5 v1.37.6"},
		"v1.99.1":      {"", "v1.99.0 v1.99.2 v1.99.3 v1.99.4 v1.99.5 v1.99.6 v1.99.7"},
	} {
		var listed []versions.Release
		for name := range strings.FieldsSeq(test.listed) {
			listed = append(listed, mustRelease(t, name))
		}
		var got []string
		for _, r := range nearby(mustRelease(t, release), listed) {
			got = append(got, r.String())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %s, want %s", release, strings.Join(got, " "), test.want)
		}
	}
}

// The releases of these names cannot be built from the public module proxies: the search must find
// the tested patch.
func TestTestedPatchIsAlwaysAmongThoseTried(t *testing.T) {
	for _, name := range []string{"v1.25.16", "v1.27.16", "v1.29.14", "v1.31.14", "v1.32.13", "v1.34.7"} {
		release := mustRelease(t, name)
		found := slices.ContainsFunc(nearby(release, nil),
			func(r versions.Release) bool { return r.String() == newestTested(release) })
		if !found {
			t.Errorf("%s: %s is not tried", name, newestTested(release))
		}
	}
}
