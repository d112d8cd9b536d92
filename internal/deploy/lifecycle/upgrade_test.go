package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/versions"
)

// upgrading is the upgrade of a scheduler whose record names another team's image and code.
func upgrading(t *testing.T, f spec.Flags) *upgradeRun {
	t.Helper()
	f.Name, f.CacheDir = "s", t.TempDir()
	sp, err := spec.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	request := &v1alpha1.CustomScheduler{Spec: v1alpha1.CustomSchedulerSpec{
		Source: v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Module: "evil.example.com/m@v1.0.0"}}},
		Image:  v1alpha1.Image{Base: "registry.example.com/evil:1"},
	}}
	const image = "registry.example.com/team/kube-scheduler:v1.34.1"
	return &upgradeRun{
		Session: &session.Session{CacheDir: f.CacheDir, Log: zap.NewNop()},
		o:       UpgradeOptions{Spec: sp}, info: &inspect.Info{},
		installed: &deploy.Installed{Release: versions.Release{Major: 1, Minor: 34, Patch: 1}, Image: image,
			Request: request, Origin: "revision 3 of s"},
		target: versions.Release{Major: 1, Minor: 34, Patch: 2},
		report: &Upgrade{Name: "s", Release: "v1.34.1", Target: "v1.34.2", Image: image, Due: true},
	}
}

// One hostile cluster of a fleet would overwrite the image of the others.
func TestUpgradeBuildsNothingUnderANameOfTheClusterWithoutConfirmation(t *testing.T) {
	const theirs = "registry.example.com/team/kube-scheduler:v1.34.2"
	own := filepath.Join(t.TempDir(), "pmk-sched.yaml")
	if err := os.WriteFile(own, []byte("apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: s}\n"+
		"spec: {image: {repository: registry.example.com/own}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags spec.Flags
		// image is built, or none.
		image string
		asks  bool
	}{
		"nothing named":            {spec.Flags{}, theirs, true},
		"the file names the image": {spec.Flags{File: own}, "registry.example.com/own:v1.34.2", false},
		"an image of elsewhere":    {spec.Flags{Image: "registry.example.com/own:v1.34.2"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			u := upgrading(t, c.flags)
			if err := u.describeAgain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.image == "" {
				if u.build != nil {
					t.Errorf("%s is built", u.build.Tag)
				}
				return
			}
			if u.build.Tag != c.image || !u.build.Push || (u.build.Unconfirmed != nil) != c.asks {
				t.Fatalf("got %+v, want %s, to confirm: %t", u.build, c.image, c.asks)
			}
			if !c.asks {
				return
			}
			// A fleet has no one to ask.
			err := u.planConfirmed(t.Context())
			if hints := strings.Join(problem.Hints(err), "\n"); err == nil || !problem.IsInvalid(err) ||
				!strings.Contains(err.Error(), theirs) || !strings.Contains(err.Error(), "revision 3 of s") ||
				!strings.Contains(hints, "spec.image of -f") || !strings.Contains(hints, "--image") {
				t.Errorf("got %v", err)
			}
			no := errors.New("no")
			u.o.Confirm = func(_ context.Context, found *pack.Unconfirmed) error {
				if found.Image != theirs || !slices.Equal(found.Content,
					[]string{"plugin evil.example.com/m@v1.0.0", "base registry.example.com/evil:1"}) {
					t.Errorf("asked for %+v", found)
				}
				return no
			}
			if err := u.planConfirmed(t.Context()); !errors.Is(err, no) {
				t.Errorf("got %v", err)
			}
			if _, err := pack.Run(t.Context(), *u.build, u.Session); err == nil || !problem.IsInvalid(err) {
				t.Errorf("after the answer no: %v", err)
			}
			if err := Confirm(func(context.Context, *pack.Unconfirmed) error { return nil }).Settle(t.Context(),
				&u.build.Unconfirmed); err != nil || u.build.Unconfirmed != nil {
				t.Errorf("after the answer yes: %v", err)
			}
		})
	}
}
