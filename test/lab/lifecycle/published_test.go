//go:build linux && labs

package lifecycle

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/published"
)

// The environment has no go command and the cache is empty, so nothing can be compiled.
func TestLabOfPublishedProgramsOfTheReleaseCompilesNothing(t *testing.T) {
	for _, layout := range []string{lab.LayoutPMK, lab.LayoutKubeadm} {
		t.Run(layout, func(t *testing.T) {
			stateDir, _ := directories(t)
			site, _ := published.Compiled(t, labs.Release, programs.OfLabs()...)
			o := options(t, stateDir, "", "published-"+layout)
			o.Layout, o.Nodes = layout, 0
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
			if len(status.Programs) < len(programs.Kubernetes()) {
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
