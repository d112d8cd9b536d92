package inspect

import (
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestNodeRootIsADirectory(t *testing.T) {
	root := t.TempDir()
	writeFile(t, root, "/file", "")
	for given, want := range map[string]string{NoNode: "", root: root} {
		if got, err := FindNodeRoot(given); err != nil || got != want {
			t.Errorf("%s: got %q, %v", given, got, err)
		}
	}
	for _, name := range []string{"file", "missing"} {
		if got, err := FindNodeRoot(filepath.Join(root, name)); got != "" || !problem.IsInvalid(err) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestSchedulerKubeconfigIsFoundInTheOrderOfTheLayouts(t *testing.T) {
	root := t.TempDir()
	expect := func(want string) {
		t.Helper()
		if got, found := SchedulerKubeconfig(root); got != want || found != (want != "") {
			t.Errorf("got %q, %t, want %q", got, found, want)
		}
	}
	expect("")
	for _, path := range []string{"/etc/kubernetes/scheduler.conf", pmkKubeconfig} {
		writeFile(t, root, path, "")
		expect(path)
	}
	for path, want := range map[string]bool{pmkKubeconfig: true, "/etc/kubernetes/admin.conf": false, "": false} {
		if IsSchedulerKubeconfig(path) != want {
			t.Errorf("%q: want %t", path, want)
		}
	}
}
