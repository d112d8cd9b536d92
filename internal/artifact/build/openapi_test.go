package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// apiserver returns the files of a kube-apiserver, to be served with a release.
func apiserver(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, file := range readArchive(t, "apiserver.txtar").Files {
		files[file.Name] = string(file.Data)
	}
	return files
}

func TestAPIServerBefore124IsBuiltWithGeneratedDefinitions(t *testing.T) {
	t.Parallel()
	const release = "v1.23.17"
	p := newProxy(t)
	p.release(t, release, apiserver(t))
	o := p.options(t)
	o.Release, o.Programs = mustRelease(t, release), []Program{{Name: "kube-apiserver"}, {Name: "kube-proxy"}}
	var steps []string
	o.OnStep = func(name string) func(error) { steps = append(steps, name); return nil }

	result := mustRun(t, o)

	want := "tagged\nuntagged\nk8s.io/kubernetes/pkg/apis/tagged tagged\n"
	if diff := cmp.Diff(want, output(t, result.Binaries[0].Path)); diff != "" {
		t.Errorf("what the definitions are generated from (-want +got):\n%s", diff)
	}
	if got := output(t, result.Binaries[0].Path, "--version"); got != "Kubernetes v1.23.17\n" {
		t.Errorf("--version: got %q", got)
	}
	if !slices.Contains(steps, "generate the OpenAPI definitions of v1.23.17") {
		t.Errorf("steps: got %q", steps)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())

	o.Env = []string{}
	if again := mustRun(t, o); !again.Cached {
		t.Error("it was built again")
	}
}

func TestAPIServerBefore124IsTheSameFromEveryDirectory(t *testing.T) {
	t.Parallel()
	const release = "v1.22.2"
	p := newProxy(t)
	p.release(t, release, apiserver(t))
	var sums []string
	for range 2 {
		o := p.options(t)
		o.Release, o.Programs = mustRelease(t, release), []Program{{Name: "kube-apiserver"}}
		sums = append(sums, mustRun(t, o).Binaries[0].SHA256)
	}
	if sums[0] != sums[1] {
		t.Errorf("the bytes differ: %q", sums)
	}
}

func TestGeneratorThatFailsIsShown(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	files := apiserver(t)
	files["k8s.io/kube-openapi/cmd/openapi-gen/main.go"] = "package main\n\nimport \"log\"\n\nfunc main() { " +
		"log.Fatal(\"Failed executing generator: no such type\") }\n"
	p.release(t, "v1.22.2", files)
	o := p.options(t)
	o.Release, o.Programs = mustRelease(t, "v1.22.2"), []Program{{Name: "kube-apiserver"}}

	failed := mustFail(t, o)

	if failed.Step != "generate the OpenAPI definitions of v1.22.2" || !strings.Contains(failed.Error(), "no such type") {
		t.Errorf("got %v", failed)
	}
}

func TestLaterAPIServerNeedsNoGenerator(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	files := apiserver(t)
	files["k8s.io/kubernetes/pkg/generated/openapi/zz_generated.openapi.go"] = "package openapi\n\nvar Packages = " +
		"[]string{\"its own\"}\n"
	delete(files, "k8s.io/kube-openapi/cmd/openapi-gen/main.go")
	p.release(t, testRelease, files)
	o := p.options(t)
	o.Programs = []Program{{Name: "kube-apiserver"}}

	if got := output(t, mustRun(t, o).Binaries[0].Path); got != "tagged\nuntagged\nits own\n" {
		t.Errorf("got %q", got)
	}
}

func TestAPIServerOfATreeBefore124IsRefused(t *testing.T) {
	t.Parallel()
	o := Options{
		Release: mustRelease(t, "v1.22.2"), Source: "git:" + filepath.Join(t.TempDir(), "none"),
		Programs: []Program{{Name: "kube-apiserver"}}, Environment: Environment{CacheDir: t.TempDir(), Env: []string{}},
	}
	if err := mustRefuse(t, o); !slices.Equal(problem.Hints(err),
		[]string{"remove --source to build it from the Go modules"}) {
		t.Errorf("got %v, hints %q", err, problem.Hints(err))
	}
}
