//go:build linux && releases

// Package release tests the files of a release of pmk-sched: reproducible, installed, upgraded and
// removed with the programs that users have.
package release

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const version = "v0.1.0"

// nobody is the user and group that makes the second release.
const nobody = "65534"

// The release is made once, by root; its subtests read its files.
func TestRelease(t *testing.T) {
	dir := makeRelease(t, copyRepository(t), "0")
	dist := filepath.Join(dir, "dist")
	t.Run("the checksums list every file", func(t *testing.T) { checkSums(t, dist) })
	t.Run("archives", func(t *testing.T) { checkArchives(t, dist) })
	t.Run("deb", func(t *testing.T) { checkDeb(t, dist) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, dist) })
	t.Run("apk", func(t *testing.T) { checkAPK(t, dist) })
	t.Run("krew", func(t *testing.T) { checkKrew(t, dist) })
	t.Run("formula", func(t *testing.T) { checkFormula(t, dist) })
	t.Run("images", func(t *testing.T) { checkImages(t, dist) })
	t.Run("arm64", func(t *testing.T) { checkARM64(t, dist) })
	t.Run("another user in another directory makes the same", func(t *testing.T) {
		again := makeRelease(t, copyRepository(t), nobody)
		first, second := read(t, filepath.Join(dist, "SHA256SUMS")), read(t, filepath.Join(again, "dist/SHA256SUMS"))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("SHA256SUMS (-root +nobody):\n%s", diff)
		}
	})
}

// copyRepository copies the files of the repository, without history and programs, to a directory
// that every user can read.
func copyRepository(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	for _, dir := range []string{parent, filepath.Dir(parent)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(parent, "pmk-sched")
	shell(t, `mkdir "$1" && cd "$0" && git ls-files -co --exclude-standard -z |
		tar -c --null -T - | tar -x -C "$1" --no-same-owner`, run.Root(), dir)
	return dir
}

// makeRelease runs `make release` in dir as a user with a home of its own. A user other than root
// reads the module cache of root, and writes to a copy of its build cache.
func makeRelease(t *testing.T, dir, user string) string {
	t.Helper()
	home := filepath.Join(filepath.Dir(dir), "home")
	command := `exec make -C "$DIR" release`
	if user != "0" {
		command = `mkdir -p "$HOME/mod" "$HOME/cache" "$HOME/over"
mount -t tmpfs none "$HOME/over" && mkdir "$HOME/over/upper" "$HOME/over/work"
mount --bind "$GOMODCACHE" "$HOME/mod"
mount -t overlay none -o "lowerdir=$GOCACHE,upperdir=$HOME/over/upper,workdir=$HOME/over/work" "$HOME/cache"
find "$HOME/cache" -type d -exec chown "$RUN_AS:$RUN_AS" {} +
chown -R "$RUN_AS:$RUN_AS" "$DIR" && chown "$RUN_AS:$RUN_AS" "$HOME"
export GOMODCACHE="$HOME/mod" GOCACHE="$HOME/cache"
umask 077
exec setpriv --reuid="$RUN_AS" --regid="$RUN_AS" --clear-groups make -C "$DIR" release`
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(run.Context(t), "unshare", "--mount", "bash", "-euc", command)
	cmd.Env = append(os.Environ(), "DIR="+dir, "RUN_AS="+user, "VERSION="+version,
		"SOURCE_DATE_EPOCH=1750000000", "TMPDIR="+filepath.Dir(dir))
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB"} {
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(output(t, "go", "env", name)))
	}
	cmd.Env = append(cmd.Env, "HOME="+home)
	if err := os.Chmod(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	run.Command(t, cmd).OK(t)
	return dir
}

func checkSums(t *testing.T, dist string) {
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "SHA256SUMS") {
			digest := sha256.Sum256([]byte(read(t, filepath.Join(dist, entry.Name()))))
			fmt.Fprintf(&want, "%s  %s\n", hex.EncodeToString(digest[:]), entry.Name())
		}
		if info, err := entry.Info(); err == nil {
			t.Logf("%9d %s", info.Size(), entry.Name())
		}
	}
	if diff := cmp.Diff(want.String(), read(t, filepath.Join(dist, "SHA256SUMS"))); diff != "" {
		t.Errorf("SHA256SUMS (-want +got):\n%s", diff)
	}
	if got := strings.Count(want.String(), "\n"); got != 17 {
		t.Errorf("the release has %d files, want 17:\n%s", got, want.String())
	}
}

// shell runs a script of bash with arguments $0, $1, … and returns its output.
func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	return output(t, "bash", append([]string{"-euo", "pipefail", "-c", script}, args...)...)
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	return run.Command(t, exec.CommandContext(run.Context(t), program, args...)).OK(t).Stdout
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
