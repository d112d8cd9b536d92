//go:build linux && labs

package lifecycle

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/published"
)

// The programs of the mirror are compiled once, as the other labs' are. The environment has no go
// command and the cache is empty, so nothing can be compiled.
func TestLabOfPublishedProgramsOfTheReleaseCompilesNothing(t *testing.T) {
	for _, layout := range []string{lab.LayoutPMK, lab.LayoutKubeadm} {
		t.Run(layout, func(t *testing.T) {
			stateDir, cacheDir := directories(t)
			o := options(t, stateDir, cacheDir, "published-"+layout)
			o.Layout, o.Nodes = layout, 0
			site := mirror(t, o)
			o.CacheDir, o.Env = t.TempDir(), []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
			o.Programs = &programs.Finder{
				Environment: build.Environment{CacheDir: o.CacheDir, Env: o.Env}, From: programs.Published,
				Registry: site.Registry, Downloads: site.Downloads,
			}
			l, err := lab.Up(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			status, err := l.Status(t.Context())
			if err != nil || status.Problem != "" {
				t.Fatalf("status %+v, error %v", status, err)
			}
			if len(status.Programs) < len(lab.KubernetesPrograms()) {
				t.Errorf("programs %+v", status.Programs)
			}
			for _, p := range status.Programs {
				if !strings.HasPrefix(p.Origin, site.Registry+"/") && !strings.HasPrefix(p.Origin, site.Downloads+"/release/") {
					t.Errorf("%s is not from the mirror", p)
				}
			}
		})
	}
}

// mirror publishes the programs of a lab.
func mirror(t *testing.T, o lab.Options) *published.Site {
	t.Helper()
	const etcdVersion = "v3.5.3" // of kubeadm v1.24.3
	f := &programs.Finder{Environment: build.Environment{CacheDir: o.CacheDir, Env: o.Env}, From: programs.Build}
	names := append(lab.KubernetesPrograms(), "kubeadm", programs.Runner, programs.Etcd)
	found, err := f.Find(t.Context(), programs.Request{Release: o.Release, Names: names, EtcdVersion: etcdVersion})
	if err != nil {
		t.Fatal(err)
	}
	paths := published.Programs{}
	for name, p := range found {
		paths[name] = p.Path
	}
	return published.Start(t, o.Release.String(), etcdVersion, paths)
}
