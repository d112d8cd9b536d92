//go:build linux

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// block is a shell block of the README. place is the place where it runs, from its marker:
// "master", "machine", or "" for make targets.
type block struct{ place, script string }

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, found := range regexp.MustCompile("(?s)(?:<!-- run: (\\w+) -->\n)?```sh\n(.*?)```").FindAllStringSubmatch(
		string(text), -1) {
		blocks = append(blocks, block{found[1], found[2]})
	}
	if fences := strings.Count(string(text), "```"); len(blocks) == 0 || fences != 2*len(blocks) {
		t.Fatalf("the README has %d blocks, of which %d are marked as sh", fences/2, len(blocks))
	}
	return blocks
}

// Every command that the README shows for a control-plane node works as printed, in the order of
// the README. The stability window is short.
func TestCommandsOfTheREADMEWorkOnTheNode(t *testing.T) {
	n := labs.Shared(t, "pmk")
	uninstalled := true
	for _, b := range readmeBlocks(t) {
		if b.place != "master" {
			continue
		}
		n.Exec(t, "env", path(t), labs.EnvStableFor+"=1s", "sh", "-ec", "cd "+run.Root()+"\nset -x\n"+b.script).OK(t)
		uninstalled = strings.Contains(b.script, "pmk-sched uninstall")
	}
	if !uninstalled {
		n.Uninstall(t, "my-scheduler")
	}
}

// The commands for this machine work too, and no block is left out.
func TestCommandsOfTheREADMEWorkOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, b := range readmeBlocks(t) {
		switch b.place {
		case "":
			if !regexp.MustCompile(`\A(make [a-z-]+\n)+\z`).MatchString(b.script) {
				t.Errorf("no test runs this block, and it is not only make targets:\n%s", b.script)
			}
		case "master":
		case "machine":
			cmd := exec.CommandContext(run.Context(t), "env", path(t), "sh", "-ec", "set -x\n"+b.script)
			cmd.Dir = run.Root()
			run.Command(t, cmd).OK(t)
		default:
			t.Errorf("a block of the README runs on %q, which this test does not know", b.place)
		}
	}
}

// path is the environment variable PATH with pmk-sched.
func path(t *testing.T) string {
	t.Helper()
	return "PATH=" + filepath.Dir(run.Program(t)) + ":" + os.Getenv("PATH")
}
