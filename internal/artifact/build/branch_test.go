package build

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestBranchIsResolvedToARelease(t *testing.T) {
	p := newProxy(t)
	for _, release := range []string{"v1.24.2", "v1.24.3", "v1.24.9", "v1.30.1"} {
		p.release(t, release, nil)
	}
	p.lacks("v1.24.9", "k8s.io/client-go")
	p.lacks("v1.30.1", "k8s.io/kubectl")
	o := Environment{CacheDir: t.TempDir(), Env: p.environment(t)}
	for branch, want := range map[string]struct{ release, note string }{
		"v1.24.2": {"v1.24.2", ""},
		"1.24.2":  {"v1.24.2", ""},
		"v1.24": {"v1.24.3",
			"using v1.24.3, the newest patch of v1.24 that the module proxy serves completely (not v1.24.9)"},
		"release-1.24": {"v1.24.3",
			"using v1.24.3, the newest patch of release-1.24 that the module proxy serves completely (not v1.24.9)"},
		"v1.30": {"v1.30.1",
			"using v1.30.1: the module proxy serves no patch of v1.30 completely, and v1.30.1 lacks only k8s.io/kubectl@v0.30.1"},
		"v1.29.3-eks-036c24b": {"v1.29.3", "using v1.29.3, the upstream release of v1.29.3-eks-036c24b"},
		"v1.29.3+k3s1":        {"v1.29.3", "using v1.29.3, the upstream release of v1.29.3+k3s1"},
		"v1.27.8-gke.100":     {"v1.27.8", "using v1.27.8, the upstream release of v1.27.8-gke.100"},
		"v1.37.0-rc.1":        {"v1.37.0-rc.1", ""},
	} {
		release, note, err := ResolveBranch(t.Context(), branch, o, known)
		if err != nil || release.String() != want.release || note != want.note {
			t.Errorf("%s: got %s, note %q, %v; want %s, note %q", branch, release, note, err, want.release, want.note)
		}
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
}

func TestBranchWithoutAReleaseIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	for branch, want := range map[string]string{
		"v1.25": "the module proxy serves no patch of v1.25", "v1.12": "1.12", "master": "master", "": "",
		"v1.24.x": "v1.24.x", "v2.1": "v2.1",
	} {
		_, _, err := ResolveBranch(t.Context(), branch, Environment{CacheDir: t.TempDir(), Env: p.environment(t)}, known)
		if !problem.IsInvalid(err) || !strings.Contains(err.Error(), want) || len(problem.Hints(err)) == 0 {
			t.Errorf("%q: got %v, hints %q", branch, err, problem.Hints(err))
		}
	}
	env := append(p.environment(t), "GOPROXY=off")
	_, _, err := ResolveBranch(t.Context(), "v1.24", Environment{CacheDir: t.TempDir(), Env: env}, known)
	if err == nil || problem.IsInvalid(err) || !strings.Contains(err.Error(), "the module proxy cannot be reached") {
		t.Errorf("without a network: got %v", err)
	}
}

func known(release versions.Release) error {
	_, err := versions.Select(release)
	return err
}
