package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a shell block of the README with the place that its marker names: "master", "machine", or "" for make targets.
type block struct{ place, script string }

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, found := range regexp.MustCompile("(?s)(?:<!-- run: (\\w+) -->\n)?```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{found[1], found[2]})
	}
	if len(blocks) == 0 {
		t.Fatal("the README shows no commands")
	}
	return blocks
}

// Every command that the README shows works as it is printed there, in its order.
func TestCommandsOfTheREADMEWork(t *testing.T) {
	m := lend(t, "pmk")
	path := "PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH")
	uninstalled := true
	for _, b := range readmeBlocks(t) {
		switch b.place {
		case "":
			if !regexp.MustCompile(`\A(make [a-z-]+\n)+\z`).MatchString(b.script) {
				t.Errorf("nothing runs this block, and it is not only make targets:\n%s", b.script)
			}
		case "master":
			m.exec(t, "env", path, "sh", "-ec", "cd "+root(t)+"\nset -x\n"+b.script).ok(t)
			uninstalled = strings.Contains(b.script, "pmk-sched uninstall")
		case "machine":
			cmd := exec.CommandContext(patience(t), "env", path, "sh", "-ec", "set -x\n"+b.script)
			cmd.Dir = root(t)
			run(t, cmd).ok(t)
		default:
			t.Errorf("a block of the README is to run on %q, which this test does not know", b.place)
		}
	}
	if !uninstalled {
		m.uninstall(t, "my-scheduler")
	}
}

// root is the top of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
