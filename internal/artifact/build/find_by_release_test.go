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

// A power failure can leave a file that has its size but not its content, and so can a failing
// disk.
func TestBinaryThatChangedInTheCacheIsBuiltAgain(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	built := mustRun(t, o)
	const ref = "localhost/sched/my-scheduler:1"
	if err := Tag(o.CacheDir, built, ref); err != nil {
		t.Fatal(err)
	}
	binary := built.Binaries[0]
	if err := os.WriteFile(binary.Path, make([]byte, binary.Size), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := FindByRelease(o.CacheDir, testRelease, KubeScheduler, Host()); len(got) > 0 {
		t.Errorf("by release: got %+v", got)
	}
	if _, found, err := FindByImage(o.CacheDir, ref); found || err != nil {
		t.Errorf("by image: got %t, %v", found, err)
	}
	again := mustRun(t, o)
	if _, sum, err := HashFile(again.Binaries[0].Path); again.Cached || err != nil || sum != binary.SHA256 {
		t.Errorf("built again: cached %t, %s, %v, want %s", again.Cached, sum, err, binary.SHA256)
	}
}
