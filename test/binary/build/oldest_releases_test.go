//go:build linux && releases

package build

import (
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The README names the oldest Go with which pmk-sched is compiled: its go command reads go.mod, and
// downloads and runs the Go that go.mod requires.
func TestOldestGoRunsTheGoOfTheModule(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(run.Root(), "README.md"))
	if err != nil || !strings.Contains(string(readme), "Go "+plugins.OldestGo+" or later") {
		t.Errorf("the README does not name Go %s: %v", plugins.OldestGo, err)
	}
	goCommand := func(toolchain, dir, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(run.Context(t), program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOROOT=", "GOWORK=off")
		return strings.TrimSpace(run.Command(t, cmd).OK(t).Stdout)
	}
	elsewhere, root, oldest := t.TempDir(), run.Root(), "go"+plugins.OldestGo+".0"
	program := filepath.Join(goCommand(oldest, elsewhere, "go", "env", "GOROOT"), "bin", "go") // downloads it
	if got := goCommand("auto", elsewhere, program, "env", "GOVERSION"); got != oldest {
		t.Fatalf("outside of the module it is %s, want %s", got, oldest)
	}
	required := goCommand("auto", root, program, "list", "-m", "-f", "{{.GoVersion}}")
	version := strings.TrimPrefix(goCommand("auto", root, program, "env", "GOVERSION"), "go")
	if goversion.Compare("go"+version, "go"+required) < 0 || goversion.Compare("go"+required, "go"+plugins.OldestGo) <= 0 {
		t.Errorf("in the module it runs Go %s, go.mod requires %s", version, required)
	}
	goCommand("auto", root, program, "list", "./cmd/...")
}
