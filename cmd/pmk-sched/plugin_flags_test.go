package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Whoever deploys an image notes with which plugins its successor is to be built.
func TestDeployNotesTheFlagsThatTheImageWasBuiltWith(t *testing.T) {
	chdir(t, nil)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(here, "cache")
	t.Setenv("PMK_SCHED_CACHE", cache)
	flags := []string{"--with=builtin:timestamp", "--with=" + filepath.Join(here, "quiet"), "--import=example.com/scheme"}
	err = withCommand(t, []string{"build"}, []string{"build", "--with", "builtin:timestamp", "--with", "./quiet", "--import", "example.com/scheme"}, func(c *cli.Context) error {
		if diff := gocmp.Diff(flags, pluginFlagsToRepeat(c)); diff != "" {
			t.Errorf("build (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	name, err := image.CanonicalName("localhost/s:v1.24.3")
	if err != nil {
		t.Fatal(err)
	}
	result := &build.Result{Info: build.Info{Plugins: []plugins.Info{{Name: "Timestamp", Points: []string{"preBind"}}}}, Flags: flags}
	if err := build.Tag(cache, result, name); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, want []string
	}{
		{nil, flags},
		{[]string{"--with", "builtin:timestamp"}, []string{"--with=builtin:timestamp", "--import=example.com/scheme"}},
	} {
		args := append([]string{"deploy", "--name", "s", "--image", "localhost/s:v1.24.3"}, test.args...)
		var o install.Options
		err := withCommand(t, []string{"deploy"}, args, func(c *cli.Context) (err error) {
			if o, err = readOptions(c); err != nil {
				return err
			}
			return addPlugins(c, newUI(strings.NewReader(""), t.Output(), t.Output()), &o, versions.Release{Major: 1, Minor: 24, Patch: 3})
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(test.want, o.Flags); diff != "" {
			t.Errorf("deploy %v (-want +got):\n%s", test.args, diff)
		}
	}
}
