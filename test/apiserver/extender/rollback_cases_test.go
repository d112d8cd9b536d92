//go:build linux && cases

package extender_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/versions"
)

// An extender that was uninstalled and deployed again has another authority and perhaps another
// address.
func TestRollbackCallsAnExtenderWhereItIsNow(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err != nil {
		t.Fatal(err)
	}
	if _, err := extenders.Uninstall(t.Context(), w.deps,
		extenders.UninstallOptions{Name: "ext", Namespace: w.ns}); err != nil {
		t.Fatal(err)
	}
	before := inUse(t, w.state(t, "sched"))
	if _, _, err := w.rollBack(t, 2, release); err == nil ||
		!strings.Contains(err.Error(), "it calls extender ext, which is not deployed any more") {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(before, inUse(t, w.state(t, "sched"))); diff != "" {
		t.Errorf("the refused rollback changed something (-before +after):\n%s", diff)
	}

	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"))); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := w.rollBack(t, 2, release)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(warnings, func(text string) bool {
		return strings.Contains(text, "extender ext was deployed again since revision 2")
	}) {
		t.Errorf("warnings %q", warnings)
	}
	service, err := w.kube.CoreV1().Services(w.ns).Get(t.Context(), "ext", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := w.configuration(t, "sched"); !strings.Contains(text, "urlPrefix: https://"+service.Spec.ClusterIP+"\n") {
		t.Errorf("the scheduler does not call %s:\n%s", service.Spec.ClusterIP, text)
	}
}

func TestRollbackThatCannotWorkChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.scheduler(t, "sched")
	if _, err := extenders.Deploy(t.Context(), w.deps, w.deployment(t, w.options("ext"), "sched")); err != nil {
		t.Fatal(err)
	}
	before := inUse(t, w.state(t, "sched"))
	unchanged := func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(before, inUse(t, w.state(t, "sched"))); diff != "" {
			t.Errorf("something changed (-before +after):\n%s", diff)
		}
	}
	t.Run("no such revision", func(t *testing.T) {
		if _, _, err := w.rollBack(t, 9, release); err == nil || !strings.Contains(err.Error(), "no revision 9") {
			t.Errorf("error %v", err)
		}
		unchanged(t)
	})
	t.Run("another minor release", func(t *testing.T) {
		if _, _, err := w.rollBack(t, 1, versions.Release{Major: 1, Minor: 23, Patch: 6}); err == nil ||
			!strings.Contains(err.Error(), "it waits for storage.k8s.io/v1 CSIStorageCapacities") {
			t.Errorf("error %v", err)
		}
		unchanged(t)
	})
	t.Run("the scheduler is not stable", func(t *testing.T) {
		w.client.fails = notStable{"sched", "localhost/scheduler"}
		_, _, err := w.rollBack(t, 1, release)
		w.client.fails = notStable{}
		if err == nil || !strings.Contains(err.Error(), "rollback to revision 1") {
			t.Fatalf("error %v", err)
		}
		unchanged(t)
		revisions, err := w.deps.Cluster.Revisions(t.Context(), w.ns, "sched")
		if last := revisions[len(revisions)-1]; err != nil || last.Status != apply.Failed ||
			last.Origin != "rollback to revision 1" {
			t.Errorf("the last revision is %+v, %v", last, err)
		}
	})
}
