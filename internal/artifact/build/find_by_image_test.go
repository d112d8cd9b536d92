package build

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

func TestImageIsFoundByTheReferenceRecordedLast(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	p.release(t, "v1.24.4", nil)
	o := p.options(t)
	older := mustRun(t, o)
	o.Release = mustRelease(t, "v1.24.4")
	newer := mustRun(t, o)
	newer.Recipe = v1alpha1.Recipe{Plugins: []v1alpha1.Plugin{{Path: "/plugins/quiet"}}}
	const ref = "localhost/sched/my-scheduler:1"

	if _, found, err := FindByImage(o.CacheDir, ref); found || err != nil {
		t.Fatalf("before it was recorded: got %v, %v", found, err)
	}
	for _, r := range []*Result{older, newer} {
		if err := Tag(o.CacheDir, r, ref); err != nil {
			t.Fatal(err)
		}
	}
	got, found, err := FindByImage(o.CacheDir, ref)
	if err != nil || !found {
		t.Fatalf("got %v, %v", found, err)
	}
	if diff := cmp.Diff(newer.Binaries, got.Binaries); diff != "" {
		t.Errorf("binaries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(newer.Recipe, got.Recipe); diff != "" {
		t.Errorf("recipe (-want +got):\n%s", diff)
	}
	if err := os.Remove(newer.Binaries[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, found, err := FindByImage(o.CacheDir, ref); found || err != nil {
		t.Errorf("after the binary was removed: got %v, %v", found, err)
	}
}
