package build

import (
	"os"
	"testing"
)

func TestBuildsOfAReleaseAreFound(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	p.release(t, "v1.24.4", nil)
	o := p.options(t)
	if got := FindByRelease(o.CacheDir, testRelease, KubeScheduler, Host()); len(got) > 0 {
		t.Fatalf("in an empty cache: %v", got)
	}
	built := mustRun(t, o)
	o.Release = mustRelease(t, "v1.24.4")
	mustRun(t, o)
	got := FindByRelease(o.CacheDir, testRelease, KubeScheduler, Host())
	if len(got) != 1 || got[0].Binaries[0] != built.Binaries[0] || got[0].Info.Release != testRelease {
		t.Fatalf("got %+v, want %+v", got, built)
	}
	if got := FindByRelease(o.CacheDir, testRelease, "kubelet", Host()); len(got) > 0 {
		t.Errorf("another program: %v", got)
	}
	if err := os.Remove(built.Binaries[0].Path); err != nil {
		t.Fatal(err)
	}
	if got := FindByRelease(o.CacheDir, testRelease, KubeScheduler, Host()); len(got) > 0 {
		t.Errorf("without the binary: %v", got)
	}
}
