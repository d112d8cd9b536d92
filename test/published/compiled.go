package published

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Etcd is the version of etcd that kubeadm v1.24.3 uses.
const Etcd = "v3.5.3"

// Compiled starts a site with programs of a release, which are compiled unless the build cache of
// the tests has them. It returns them by name, too.
func Compiled(t testing.TB, release string, names ...string) (*Site, map[string]programs.Program) {
	t.Helper()
	cache, err := run.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	f := &programs.Finder{Environment: build.Environment{CacheDir: cache, Env: os.Environ()}, From: programs.Build}
	found, err := f.Find(t.Context(), programs.Request{Release: parsed, Names: names, EtcdVersion: Etcd})
	if err != nil {
		t.Fatal(err)
	}
	paths := Programs{}
	for name, p := range found {
		paths[name] = p.Path
	}
	return Start(t, release, Etcd, paths), found
}
