package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// The files in which releases name their Go, as they really are: until 1.22 and
// in early patches of 1.24 and 1.25 there is no .go-version, from 1.33 (but for
// 1.34) dependencies.yaml no longer has Go.
func TestVersionOfGoThatReleasesName(t *testing.T) {
	for _, test := range []struct{ release, goVersion, dependencies, image, want string }{
		{"v1.20.15", "", "1.15.15", "v1.15.15-legacy-1", "1.15.15"},
		{"v1.21.3", "", "1.16.6", "v1.16.6-1", "1.16.6"},
		{"v1.22.2", "", "1.16.8", "v1.22.0-go1.16.8-buster.0", "1.16.8"},
		{"v1.23.17", "1.19.6", "1.19.6", "v1.23.0-go1.19.6-bullseye.0", "1.19.6"},
		{"v1.24.3", "", "1.18.3", "v1.24.0-go1.18.3-bullseye.0", "1.18.3"},
		{"v1.25.4", "", "1.19.3", "v1.25.0-go1.19.3-bullseye.0", "1.19.3"},
		{"v1.28.15", "1.22.8", "1.22.8", "v1.28.0-go1.22.8-bullseye.0", "1.22.8"},
		{"v1.33.13", "1.25.11", "", "v1.33.0-go1.25.11-bullseye.0", "1.25.11"},
		{"v1.37.1", "1.26.8", "", "v1.37.0-go1.26.8-bullseye.0", "1.26.8"},
	} {
		all := map[string]string{
			".go-version": test.goVersion,
			"build/dependencies.yaml": "dependencies:\n  - name: \"golang: upstream version\"\n    version: " +
				test.dependencies + "\n",
			"build/build-image/cross/VERSION": test.image + "\n",
		}
		// Each file alone says the same as all of them.
		for _, names := range [][]string{{".go-version", "build/dependencies.yaml", "build/build-image/cross/VERSION"},
			{"build/build-image/cross/VERSION"}} {
			dir := t.TempDir()
			for _, name := range names {
				if name != ".go-version" || test.goVersion != "" {
					write(t, filepath.Join(dir, filepath.FromSlash(name)), all[name])
				}
			}
			if got, err := namedGo(dir); err != nil || got != test.want {
				t.Errorf("%s, %q: got %q, %v, want %q", test.release, names, got, err, test.want)
			}
		}
	}
}

// The forms that go.mod of Kubernetes has had, each reduced to its differences.
func TestPinsAreThoseOfTheReleasesOwnGoMod(t *testing.T) {
	archive := readArchive(t, "gomod.txtar")
	if len(archive.Files) == 0 {
		t.Fatal("no go.mod to test with")
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			release := mustRelease(t, file.Name)
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), string(file.Data))
			s := source{Path: kubernetes, Version: release.String()}
			if err := s.readDir(dir); err != nil {
				t.Fatal(err)
			}
			files, err := generateModule(s, release.Staging(), "", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			own, ours := parseMod(t, file.Data), parseMod(t, files["go.mod"])

			want := map[string]string{kubernetes: kubernetes + " " + release.String()}
			for _, r := range own.Replace {
				to := r.New.Path + " " + r.New.Version
				if r.New.Version == "" {
					to = r.Old.Path + " " + release.Staging()
				}
				want[strings.TrimSpace(r.Old.Path+" "+r.Old.Version)] = to
			}
			got := map[string]string{}
			for _, r := range ours.Replace {
				got[strings.TrimSpace(r.Old.Path+" "+r.Old.Version)] = r.New.Path + " " + r.New.Version
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replacements (-release +ours):\n%s", diff)
			}
			if diff := cmp.Diff(settings(own), settings(ours)); diff != "" {
				t.Errorf("go line and godebug (-release +ours):\n%s", diff)
			}
			if len(ours.Require) != 1 || ours.Require[0].Mod.Path != kubernetes ||
				ours.Require[0].Mod.Version != release.String() {
				t.Errorf("requires %v, want nothing but the release", ours.Require)
			}
			for _, r := range own.Require {
				if r.Mod.Version == "v0.0.0" && !slices.Contains(s.Staging, r.Mod.Path) {
					t.Errorf("%s is required at v0.0.0 and not taken for a staging module", r.Mod.Path)
				}
			}
		})
	}
}

func parseMod(t *testing.T, data []byte) *modfile.File {
	t.Helper()
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// settings are the go line and the godebug lines of a go.mod.
func settings(file *modfile.File) []string {
	found := []string{"go " + file.Go.Version}
	for _, g := range file.Godebug {
		found = append(found, g.Key+"="+g.Value)
	}
	return found
}

func TestToolchainLineIsReadLast(t *testing.T) {
	const mod = "module k8s.io/kubernetes\n\ngo 1.24.0\n\ntoolchain go1.24.9\n"
	for name, want := range map[string]string{"": "1.24.9", "1.24.7\n": "1.24.7"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), mod)
		if name != "" {
			write(t, filepath.Join(dir, ".go-version"), name)
		}
		s := source{Path: kubernetes}
		if err := s.readDir(dir); err != nil || s.Go != want {
			t.Errorf(".go-version %q: got %q, %v, want %q", name, s.Go, err, want)
		}
	}
}
