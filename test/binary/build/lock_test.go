//go:build linux

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two builds of one file give the same lock and the same program; a build with a plugin that has
// changed since fails with its name.
func TestLockedBuildIsTheSameUntilAPluginChanges(t *testing.T) {
	dir := t.TempDir()
	pmkSched(t, dir, "plugin", "new", "--branch", "v1.24.3", "QuietHours").OK(t)
	plugin := filepath.Join(dir, "quiethours")
	args := func(more ...string) []string {
		return append([]string{"build", "-f", "pmk-sched.yaml", "--busybox", "/bin/busybox"}, more...)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(plugin, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	pmkSched(t, plugin, args("--archive", "one.tar", "--lock")...).OK(t).Prints(t, "pmk-sched.lock")
	lock := read("pmk-sched.lock")
	for _, text := range []string{"\nrelease: v1.24.3\n", "\ngo: 1.18.", "\nbase: sha256:", "- name: QuietHours\n",
		"\n  - k8s.io/kubernetes v1.24.3 h1:", "\n  - k8s.io/api v0.24.3 h1:", "platform: linux/"} {
		if !strings.Contains(lock, text) {
			t.Errorf("the lock lacks %q:\n%s", text, lock)
		}
	}
	if strings.Contains(lock, dir) {
		t.Errorf("the lock has a path of this machine:\n%s", lock)
	}

	// The second build does not find the first one in its cache.
	cache := append([]string{"--cache-dir", t.TempDir()}, args("--archive", "two.tar", "--lock")...)
	pmkSched(t, plugin, cache...).OK(t)
	if again := read("pmk-sched.lock"); again != lock {
		t.Errorf("the second build wrote another lock:\n%s\n---\n%s", lock, again)
	}
	if read("one.tar") != read("two.tar") {
		t.Error("the second build made another image")
	}
	pmkSched(t, plugin, args("--archive", "two.tar", "--locked")...).OK(t)

	source := read("quiethours.go")
	if err := os.WriteFile(filepath.Join(plugin, "quiethours.go"),
		[]byte(source+"\n// Changed has no effect.\nconst Changed = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pmkSched(t, plugin, args("--archive", "never.tar", "--locked")...).Fails(t, 3, "the build differs from pmk-sched.lock",
		"plugin QuietHours (dir example.com/quiethours): its sources have changed")
	if _, err := os.Stat(filepath.Join(plugin, "never.tar")); !os.IsNotExist(err) {
		t.Errorf("the image was written: %v", err)
	}
}
