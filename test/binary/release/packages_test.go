//go:build linux && releases

package release

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const newer = "v0.1.1"

// checkArchives looks for the license, manual pages and completions in all archives, and runs the
// program for this machine.
func checkArchives(t *testing.T, dist string) {
	for _, platform := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		list := output(t, "tar", "-tvzf", archive(dist, platform))
		for _, line := range []string{"-rwxr-xr-x 0/0 ", "LICENSE", "pmk-sched", "man/pmk-sched.1", "man/pmk-sched-deploy.1",
			"completion/_pmk-sched", "completion/pmk-sched.bash", "completion/pmk-sched.fish"} {
			if !strings.Contains(list, line) {
				t.Errorf("%s lacks %q:\n%s", platform, line, list)
			}
		}
		if strings.Contains(list, " pmk-lab\n") != strings.HasPrefix(platform, "linux") {
			t.Errorf("%s: only archives for Linux have pmk-lab:\n%s", platform, list)
		}
	}
	dir := unpack(t, archive(dist, "linux_amd64"))
	if got := output(t, filepath.Join(dir, "pmk-sched"), "version"); !strings.Contains(got, version) {
		t.Errorf("version: %s", got)
	}
	output(t, "bash", "-n", filepath.Join(dir, "completion/pmk-sched.bash"))
	output(t, "zsh", "-n", filepath.Join(dir, "completion/_pmk-sched"))
	for _, arch := range []string{"amd64", "arm64"} {
		list := output(t, "tar", "-tzf", filepath.Join(dist, "pmk-extender_"+version+"_linux_"+arch+".tar.gz"))
		if list != "LICENSE\npmk-extender\n" {
			t.Errorf("pmk-extender %s: %q", arch, list)
		}
	}
}

func archive(dist, platform string) string {
	return filepath.Join(dist, "pmk-sched_"+version+"_"+platform+".tar.gz")
}

// unpack unpacks an archive into a new directory.
func unpack(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	output(t, "tar", "-xf", file, "-C", dir)
	return dir
}

// packageOf makes a package of the newer version for this machine from the archive of the release.
func packageOf(t *testing.T, dist, packager string) string {
	t.Helper()
	stage, to := unpack(t, archive(dist, "linux_amd64")), t.TempDir()
	shell(t, `cd "$0" && mkdir man.gz linux_amd64 && mv pmk-sched pmk-lab linux_amd64/ && cp man/* man.gz/ && gzip man.gz/*`, stage)
	cmd := exec.CommandContext(run.Context(t), run.Binary(t, "nfpm"), "package",
		"--config", filepath.Join(run.Root(), "hack/release/nfpm.yaml"), "--packager", packager, "--target", to)
	cmd.Env = append(os.Environ(), "ARCH=amd64", "VERSION="+newer, "STAGE="+stage)
	run.Command(t, cmd).OK(t)
	files, err := filepath.Glob(filepath.Join(to, "*."+packager))
	if err != nil || len(files) != 1 {
		t.Fatalf("nfpm wrote %q, %v", files, err)
	}
	return files[0]
}

// checkInstalled compares the files of a package in a root with the archive.
func checkInstalled(t *testing.T, dist, root string, more ...string) {
	t.Helper()
	info, err := os.Stat(filepath.Join(root, "usr/bin/pmk-sched"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("the program is not installed: %v, %v", info, err)
	}
	want := read(t, filepath.Join(unpack(t, archive(dist, "linux_amd64")), "pmk-sched"))
	if read(t, filepath.Join(root, "usr/bin/pmk-sched")) != want {
		t.Error("the package and the archive have different programs")
	}
	program, err := elf.Open(filepath.Join(root, "usr/bin/pmk-sched"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the package depends on nothing, and the program on %q, %v", libraries, err)
	}
	for _, file := range append([]string{"usr/share/man/man1/pmk-sched.1.gz", "usr/share/man/man1/pmk-sched-deploy.1.gz",
		"usr/share/bash-completion/completions/pmk-sched", "usr/share/fish/vendor_completions.d/pmk-sched.fish"}, more...) {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("file %s: %v, %v", file, info, err)
		}
	}
}

// checkRemoved fails if a file of the package is left in a root.
func checkRemoved(t *testing.T, root string) {
	t.Helper()
	if left := shell(t, `cd "$0" && find . -name '*pmk-sched*' ! -path './var/*'`, root); left != "" {
		t.Errorf("files are left:\n%s", left)
	}
}

func checkDeb(t *testing.T, dist string) {
	root := t.TempDir()
	shell(t, `cd "$0" && mkdir -p var/lib/dpkg/info var/lib/dpkg/updates && touch var/lib/dpkg/status`, root)
	status := func() string {
		return shell(t, `dpkg-query --admindir="$0/var/lib/dpkg" -W -f '${Status} ${Version}' pmk-sched`, root)
	}
	deb := filepath.Join(dist, "pmk-sched_0.1.0_amd64.deb")
	installs := shell(t, `mkdir -p "$0/apt/lists/partial" && apt-get -o Dir::State::status="$0/var/lib/dpkg/status" \
		-o Dir::State::lists="$0/apt/lists" -o Dir::Cache="$0/apt" install --simulate "$1" | grep ^Inst`, root, deb)
	if !strings.HasPrefix(installs, "Inst pmk-sched (0.1.0 ") || strings.Count(installs, "\n") != 1 {
		t.Errorf("apt on a system without packages: %s", installs)
	}
	output(t, "dpkg", "--root="+root, "-i", deb)
	if got := status(); got != "install ok installed 0.1.0" {
		t.Errorf("status %q", got)
	}
	checkInstalled(t, dist, root, "usr/share/doc/pmk-sched/copyright", "usr/share/zsh/vendor-completions/_pmk-sched")
	output(t, "dpkg", "--root="+root, "-i", packageOf(t, dist, "deb"))
	if got := status(); got != "install ok installed 0.1.1" {
		t.Errorf("status %q after the upgrade", got)
	}
	checkInstalled(t, dist, root, "usr/share/doc/pmk-sched/copyright")
	output(t, "dpkg", "--root="+root, "--purge", "pmk-sched")
	checkRemoved(t, root)
}

func checkRPM(t *testing.T, dist string) {
	root := t.TempDir()
	rpm := func(args ...string) string { return output(t, "rpm", append([]string{"--root", root}, args...)...) }
	query := func() string { return strings.TrimSpace(rpm("-q", "pmk-sched")) }
	rpm("--initdb")
	rpm("-i", "--nodeps", filepath.Join(dist, "pmk-sched-0.1.0-1.x86_64.rpm"))
	if got := query(); got != "pmk-sched-0.1.0-1.x86_64" {
		t.Errorf("rpm -q prints %q", got)
	}
	rpm("-V", "--nodeps", "pmk-sched")
	checkInstalled(t, dist, root, "usr/share/licenses/pmk-sched/LICENSE", "usr/share/zsh/site-functions/_pmk-sched")
	rpm("-U", "--nodeps", packageOf(t, dist, "rpm"))
	if got := query(); got != "pmk-sched-0.1.1-1.x86_64" {
		t.Errorf("rpm -q prints %q after the upgrade", got)
	}
	checkInstalled(t, dist, root, "usr/share/licenses/pmk-sched/LICENSE")
	rpm("-e", "pmk-sched")
	checkRemoved(t, root)
}

// Debian has no apk-tools: the package is unpacked, and its description read.
func checkAPK(t *testing.T, dist string) {
	root := t.TempDir()
	shell(t, `tar -xzf "$1" -C "$0" 2>/dev/null`, root, filepath.Join(dist, "pmk-sched_0.1.0_x86_64.apk"))
	checkInstalled(t, dist, root, "usr/share/licenses/pmk-sched/LICENSE", "usr/share/zsh/site-functions/_pmk-sched")
	info := read(t, filepath.Join(root, ".PKGINFO"))
	for _, line := range []string{"pkgname = pmk-sched\n", "pkgver = 0.1.0\n", "arch = x86_64\n", "license = Apache-2.0\n"} {
		if !strings.Contains(info, line) {
			t.Errorf(".PKGINFO lacks %q:\n%s", line, info)
		}
	}
}
