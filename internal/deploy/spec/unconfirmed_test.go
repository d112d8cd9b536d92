package spec

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// The cluster has recorded everything that the user has not named: nothing of it is built under a
// name of the cluster, and none of its code is run, without a question.
func TestWhatTheUserHasToConfirm(t *testing.T) {
	content, sum := archived(t)
	const deployed = "registry.example.com/theirs:v1.24.3-plugins-0123456789@sha256:0"
	record := v1alpha1.CustomSchedulerSpec{
		Source: v1alpha1.Source{Go: "1.25.1", Imports: []string{"example.com/scheme"}, Plugins: []v1alpha1.Plugin{
			{Builtin: "timestamp"}, {Path: "/home/x/mine", Content: content}, {Module: "example.com/m@v1.0.0", Package: "p"}}},
		Image: v1alpha1.Image{Reference: "registry.example.com/theirs:{release}", Base: "registry.example.com/base:1",
			Platforms: []string{"linux/amd64"}},
	}
	bundled := v1alpha1.CustomSchedulerSpec{Source: v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "timestamp"}}}}
	named := bundled
	named.Image.Repository = "registry.example.com/recorded"
	foreign := []string{"plugin /home/x/mine, sha256:" + sum, "plugin example.com/m@v1.0.0:p", "import example.com/scheme"}
	all := []string{"plugin builtin:timestamp", foreign[0], foreign[1], foreign[2], "Go 1.25.1",
		"base registry.example.com/base:1", "platforms linux/amd64"}
	other := record.Source.Plugins[1]
	other.Content = []byte("other code")
	const file = "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: s}\nspec: {image: {"
	for name, c := range map[string]struct {
		file   string
		record v1alpha1.CustomSchedulerSpec
		built  *v1alpha1.Recipe
		// image is the target of an upgrade, unnamed is set if the user has to confirm it, and lists
		// what is in it. run is the code to confirm before it runs.
		image   string
		unnamed bool
		lists   []string
		run     []string
	}{
		"a record": {"", record, nil, "registry.example.com/theirs:v1.25.4-plugins-0123456789", true, all, foreign},
		"a record of bundled plugins": {"", bundled, nil, "registry.example.com/theirs:v1.25.4-plugins-0123456789", true,
			[]string{"plugin builtin:timestamp"}, nil},
		"a recorded repository": {"", named, nil, "registry.example.com/recorded:v1.25.4-plugins-", true,
			[]string{"plugin builtin:timestamp"}, nil},
		"a record of what this machine built": {"", record,
			&v1alpha1.Recipe{Plugins: record.Source.Plugins, Imports: record.Source.Imports},
			"registry.example.com/theirs:v1.25.4-plugins-0123456789", true, all, nil},
		"a record of other code than this machine built": {"", record,
			&v1alpha1.Recipe{Plugins: []v1alpha1.Plugin{other, {Module: "example.com/m@v1.0.1", Package: "p"}}},
			"registry.example.com/theirs:v1.25.4-plugins-0123456789", true, all, foreign},
		"a file": {file + "repository: registry.example.com/mine}}", record, nil, "registry.example.com/mine:v1.25.4", false,
			nil, nil},
		"a file with a tag": {file + "repository: registry.example.com/mine, tag: v1.24.3-a}}", record, nil,
			"registry.example.com/mine:v1.25.4-a", false, nil, nil},
		"a file with a complete name": {file + "reference: 'registry.example.com/mine:a-{release}'}}", record, nil,
			"registry.example.com/mine:a-v1.25.4", false, nil, nil},
		"a file that names no image": {file + "base: 'busybox:1'}}", record, nil,
			"registry.example.com/theirs:v1.25.4-plugins-0123456789", true, []string{"base busybox:1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := Flags{Name: "s", CacheDir: t.TempDir()}
			if c.file != "" {
				f.File = filepath.Join(t.TempDir(), "pmk-sched.yaml")
				if err := os.WriteFile(f.File, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := deploy.Installed{Request: &v1alpha1.CustomScheduler{Spec: c.record}, Origin: "revision 3 of s",
				Built: c.built}
			s, err := Read(f)
			if err == nil {
				s, err = s.Again(before, "v1.25.4", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.Simulation(nil, nil)
			if err == nil {
				s, err = s.WithTarget(deployed, "v1.24.3", "v1.25.4")
			}
			if err != nil {
				t.Fatal(err)
			}
			build, err := s.Build(BuildFlags{Tag: s.GivenImage(), Push: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(build.Tag) < len(c.image) || build.Tag[:len(c.image)] != c.image {
				t.Errorf("the image is %s, want %s", build.Tag, c.image)
			}
			var wantBuild, wantRun *pack.Unconfirmed
			if c.unnamed {
				wantBuild = &pack.Unconfirmed{Origin: "revision 3 of s", Image: build.Tag, Content: c.lists}
			}
			if c.run != nil {
				wantRun = &pack.Unconfirmed{Origin: "revision 3 of s", Content: c.run}
			}
			if diff := cmp.Diff(wantBuild, build.Unconfirmed); diff != "" {
				t.Errorf("to build (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantRun, run.Unconfirmed); diff != "" {
				t.Errorf("to run (-want +got):\n%s", diff)
			}
			if run.Recorded != (c.run != nil) {
				t.Errorf("it runs in a sandbox: %t", run.Recorded)
			}
		})
	}
}

// archived returns the recorded sources of a plugin, and their hash.
func archived(t *testing.T) (content []byte, sum string) {
	t.Helper()
	file := described(t)
	content, err := plugins.Archive(plugins.Plugin{Dir: filepath.Join(filepath.Dir(file), "plugins/mine")})
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	dir, err := unpack(content, cache)
	if err != nil {
		t.Fatal(err)
	}
	for filepath.Dir(dir) != filepath.Join(cache, "plugins") {
		dir = filepath.Dir(dir)
	}
	return content, filepath.Base(dir)
}
