package pack

import (
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestReadPluginsReturnsTheRecipeOfTheImage(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	recipe := v1alpha1.Recipe{Plugins: []v1alpha1.Plugin{{Builtin: "timestamp"}, {Path: "/plugins/quiet"}},
		Imports: []string{"example.com/scheme"}}
	name, err := image.CanonicalName("localhost/s:v1.24.3")
	if err != nil {
		t.Fatal(err)
	}
	result := &build.Result{Info: build.Info{Plugins: []plugins.Info{{Name: "Timestamp", Points: []string{"preBind"}}}},
		Recipe: recipe}
	if err := build.Tag(cache, result, name); err != nil {
		t.Fatal(err)
	}
	contents, err := ReadPlugins(t.Context(), &session.Session{CacheDir: cache}, "localhost/s:{release}",
		versions.Release{Major: 1, Minor: 24, Patch: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(&recipe, contents.Recipe); diff != "" {
		t.Errorf("recipe (-want +got):\n%s", diff)
	}
}
