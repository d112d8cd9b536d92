package build

import (
	"os/exec"
	"strings"
	"testing"
)

// The tests of a package and of a file that is added to the scheduler's package are programs, like
// main packages.
func TestTestsAreCompiledToPrograms(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/test/e2e/e2e.go": "package e2e\n",
		"k8s.io/kubernetes/test/e2e/e2e_test.go": `package e2e

import "testing"

func TestE2E(*testing.T) {}
`})
	o := p.options(t)
	o.Programs = []Program{
		{Name: "e2e.test", Package: kubernetes + "/test/e2e", Test: true},
		{Name: "added.test", Package: SchedulerPackage, Test: true},
		{Name: KubeScheduler},
	}
	o.Files = map[string][]byte{SchedulerDir + "/added_test.go": []byte(`package main

import "testing"

func TestAdded(*testing.T) {}
`)}

	result := mustRun(t, o)

	for i, want := range []string{"TestE2E", "TestAdded"} {
		out, err := exec.Command(result.Binaries[i].Path, "-test.list", ".").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("tests of %s: got %q, %v, want %s", o.Programs[i].Name, out, err, want)
		}
	}
	if got := result.Binaries[2].Program; got != KubeScheduler {
		t.Errorf("third program: got %s", got)
	}
	if o.Programs = o.Programs[:1]; !mustRun(t, o).Cached {
		t.Error("a second build of the test compiles it again")
	}
}
