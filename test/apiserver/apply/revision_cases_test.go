//go:build linux && cases

package apply_test

import (
	"maps"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
)

// Any number of Secrets with any content takes little memory, and a number that is too large is
// ignored.
func TestForeignRevisionsTakeLittleMemory(t *testing.T) {
	ctx, client, ns := testContext(t), newClient(t, server.Config()), server.Namespace(t)
	save(ctx, t, client, "flooded", ns, "a", apply.Deployed)
	secrets := server.Client(t).CoreV1().Secrets(ns)
	mine, err := secrets.Get(ctx, "pmk-sched-flooded-revision-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 1000<<10)
	for number := range 120 {
		label := strconv.Itoa(1000 + number)
		if number == 119 {
			label = "9223372036854775807"
		}
		flood := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pmk-sched-flooded-revision-" + label,
			Labels: maps.Clone(mine.Labels)}, Type: mine.Type, Data: map[string][]byte{"objects.json.gz": large}}
		flood.Labels["pmk-sched.io/revision"] = label
		flood.Labels["pmk-sched.io/revision-status"] = string(apply.Failed)
		if _, err := secrets.Create(ctx, flood, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	revisions, err := client.Revisions(ctx, ns, "flooded")
	runtime.ReadMemStats(&after)
	if err != nil || len(revisions) != 50 || revisions[0].Number != 1069 || revisions[49].Number != 1118 {
		t.Errorf("%d revisions, error %v", len(revisions), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("listing took %d MiB", took>>20)
	}
	runtime.ReadMemStats(&before)
	owned, err := client.Owned(ctx, "flooded", ns)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || len(owned) != 121 || took > 32<<20 {
		t.Errorf("%d objects took %d MiB, error %v", len(owned), took>>20, err)
	}
	next, err := client.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: "flooded", Namespace: ns}, Objects: objects(t, "flooded", ns, "b")})
	if err != nil || next.Number != 1119 {
		t.Errorf("saved as %+v, %v", next, err)
	}
}
