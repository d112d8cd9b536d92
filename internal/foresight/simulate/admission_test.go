package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// A snapshot of a cluster has all kinds of classes, unless the user may not list them or an older
// pmk-sched has made it. Files have what the user chose.
func TestMissingClassesAreNoted(t *testing.T) {
	h := snapshot.Header{Source: snapshot.FromCluster, CreatedBy: "v0.1.0",
		Resources: []snapshot.Resource{
			{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, {Group: "storage.k8s.io", Resource: "storageclasses"},
			{Resource: "resourcequotas"},
		},
		Skipped: []snapshot.Skipped{{Resource: "limitranges", Reason: snapshot.NotPermitted}},
	}
	want := []string{
		"the snapshot has no limitranges: no permission; added pods do not get requests and limits that they set",
		"the snapshot has no runtimeclasses.node.k8s.io: pmk-sched v0.1.0 did not read them; " +
			"added pods do not get the overhead and the nodes of their RuntimeClass",
	}
	if diff := cmp.Diff(want, admissionNotes(&h)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.Source = snapshot.FromFiles
	if notes := admissionNotes(&h); len(notes) > 0 {
		t.Errorf("got %s", strings.Join(notes, ", "))
	}
}
