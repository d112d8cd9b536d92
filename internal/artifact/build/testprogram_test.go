package build

import (
	"os/exec"
	"strings"
	"testing"
)

// The tests of a package and of a file that is added to the scheduler's package are programs, like
// main packages. They have the release's version unless it is left out.
func TestTestsAreCompiledToPrograms(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/test/e2e/e2e.go":      "package e2e\n",
		"k8s.io/kubernetes/test/e2e/e2e_test.go": printsVersion("e2e", "TestE2E"),
	})
	o := p.options(t)
	o.Programs = []Program{
		{Name: "e2e.test", Package: kubernetes + "/test/e2e", Test: true},
		{Name: "added.test", Package: SchedulerPackage, Test: true, Unstamped: true},
		{Name: KubeScheduler},
	}
	o.Files = map[string][]byte{SchedulerDir + "/added_test.go": []byte(printsVersion("main", "TestAdded"))}

	result := mustRun(t, o)

	for i, want := range []string{"TestE2E: \"v1.24.3\"", "TestAdded: \"\""} {
		out, err := exec.Command(result.Binaries[i].Path).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, %v, want %s", o.Programs[i].Name, got, err, want)
		}
	}
	if got := result.Binaries[2].Program; got != KubeScheduler {
		t.Errorf("third program: got %s", got)
	}
	if o.Programs = o.Programs[:1]; !mustRun(t, o).Cached {
		t.Error("a second build of the test compiles it again")
	}
}

// printsVersion returns a file of a package with a test that prints the version of the program.
func printsVersion(pkg, test string) string {
	return `package ` + pkg + `

import (
	"fmt"
	"testing"

	"k8s.io/component-base/version"
)

func ` + test + `(t *testing.T) { fmt.Printf("%s: %q\n", t.Name(), version.GitVersion()) }
`
}
