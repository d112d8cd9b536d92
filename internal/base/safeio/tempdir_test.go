package safeio

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain is also the program that a test kills: it creates a directory, prints its name, and
// waits.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_KILLED") == "" {
		os.Exit(m.Run())
	}
	dir, remove, err := MakeTemp("check")
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(dir + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // select{} would end the program: no other goroutine runs
	_ = remove()                          // until here the lock must not be collected as garbage
}

func TestDirectoryOfAKilledRunIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_KILLED=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe() // open until the program is killed
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	other := lines.Text()
	if err := os.WriteFile(filepath.Join(other, "kube-scheduler"), []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	unrelated := filepath.Join(os.TempDir(), "pmk-sched-checkout")
	if err := os.Mkdir(unrelated, 0o755); err != nil {
		t.Fatal(err)
	}

	create := func(purpose string) (dir string, remove func() error) {
		dir, remove, err := MakeTemp(purpose)
		if err != nil {
			t.Fatal(err)
		}
		return dir, remove
	}
	own, remove := create("check")
	if !exists(other) {
		t.Error("the directory of a run that is not finished was removed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	_, removeThird := create("check")
	for dir, want := range map[string]bool{other: false, own: true, unrelated: true} {
		if exists(dir) != want {
			t.Errorf("%s exists: %t, want %t", dir, !want, want)
		}
	}
	for _, remove := range []func() error{remove, removeThird} {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "pmk-sched-check-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
