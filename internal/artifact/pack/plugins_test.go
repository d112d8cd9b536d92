package pack

import (
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestReadPluginsReturnsTheFlagsOfTheImageToRecord(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	flags := []string{"--with=builtin:timestamp", "--with=/plugins/quiet", "--import=example.com/scheme"}
	name, err := image.CanonicalName("localhost/s:v1.24.3")
	if err != nil {
		t.Fatal(err)
	}
	result := &build.Result{Info: build.Info{Plugins: []plugins.Info{{Name: "Timestamp", Points: []string{"preBind"}}}}, Flags: flags}
	if err := build.Tag(cache, result, name); err != nil {
		t.Fatal(err)
	}
	contents, err := ReadPlugins(t.Context(), Env{CacheDir: cache}, "localhost/s:{release}", versions.Release{Major: 1, Minor: 24, Patch: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(flags, contents.FlagsToRecord(false)); diff != "" {
		t.Errorf("undeclared plugins (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(flags[2:], contents.FlagsToRecord(true)); diff != "" {
		t.Errorf("declared plugins (-want +got):\n%s", diff)
	}
}
