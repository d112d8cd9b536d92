package main

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stage writes files that the release is made of, with the given mode and modification time.
func stage(t *testing.T, mode os.FileMode, modified time.Time) string {
	t.Helper()
	dir := t.TempDir()
	names := []string{"LICENSE", "man/pmk-sched.1", "completion/_pmk-sched"}
	for _, platform := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		names = append(names, platform+"/pmk-sched", platform+"/pmk-extender")
		if strings.HasPrefix(platform, "linux") {
			names = append(names, platform+"/pmk-lab")
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Modes and times of the files that are packed do not change the release.
func TestFilesOfAReleaseDependOnContentsOnly(t *testing.T) {
	var sums []string
	for _, mode := range []os.FileMode{0o600, 0o755} {
		r := release{
			version: "v0.1.0", stage: stage(t, mode, time.Unix(int64(mode), 0)), dist: t.TempDir(), modified: time.Unix(1, 0),
		}
		archives, err := r.archives()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.manifests(archives); err != nil {
			t.Fatal(err)
		}
		if err := writeSums(r.dist); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.dist, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
		for _, manifest := range []string{"krew.yaml", "homebrew.rb"} {
			text, err := os.ReadFile(filepath.Join(r.dist, "pmk-sched_v0.1.0_"+manifest))
			for _, a := range archives {
				if err != nil || !strings.Contains(string(text), "/v0.1.0/"+a.File) || !strings.Contains(string(text), a.SHA256) {
					t.Errorf("%s lacks %+v: %v\n%s", manifest, a, err, text)
				}
			}
		}
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" || strings.Count(sums[0], "\n") != 8 {
		t.Errorf("SHA256SUMS of two releases:\n%s\n%s", diff, sums[0])
	}
}

func TestToolchainHasProgramsAndSourcesWithoutTests(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin/go", "pkg/tool/linux_arm64/compile", "src/fmt/print.go", "src/fmt/print_test.go",
		"src/debug/elf/testdata/program", "src/runtime/race/race_linux_arm64.syso"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	files, err := toolchain(dir)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for _, f := range files {
		modes[f.Path] = f.Mode
	}
	want := map[string]int64{
		"/usr/local/go/bin/go": 0o755, "/usr/local/go/pkg/tool/linux_arm64/compile": 0o755,
		"/usr/local/go/src/fmt/print.go": 0o644,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestImagesHaveRootCertificates(t *testing.T) {
	var text strings.Builder
	if err := writeCertificates(&text); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text.String()))
	if n := strings.Count(text.String(), "BEGIN CERTIFICATE"); block == nil || n < 100 || n > 200 {
		t.Errorf("got %d certificates", n)
	}
}
