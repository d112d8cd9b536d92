//go:build linux && cases

package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// An outage of the API server, after which it does not know the changes any more, loses nothing but
// the times; names are replaced in the same way in the snapshot and in the changes.
func TestARecordingContinuesAfterAnOutageAndHasNoNames(t *testing.T) {
	kube := server.Client(t)
	ns := namespace(t, kube)
	createPods(t.Context(), t, kube, ns, 0, 2)
	r := record(t, "--anonymize")
	createPods(t.Context(), t, kube, ns, 2, 1)
	if err := server.StopAPI(); err != nil {
		t.Fatal(err)
	}
	away := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stored-meanwhile", Namespace: ns},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}}}}
	if err := server.Store(t.Context(), []metav1.Object{away}); err != nil {
		t.Fatal(err)
	}
	if err := server.StartAPI(run.Context(t)); err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the pod of the outage is recorded", func(context.Context) (bool, string) {
		log := r.stderr.String()
		return strings.Contains(log, "stored-meanwhile"), log
	})
	deletePod(t, kube, ns, podName(0))
	run.Eventually(t, "a deletion after the outage is recorded", func(context.Context) (bool, string) {
		log := r.stderr.String()
		return strings.Contains(log, "gone\t{\"object\": \"pods "+ns+"/"+podName(0)), log
	})
	h, changes := r.end(t)
	if h.Recording.Listed == 0 || len(h.Notes) == 0 || !h.Anonymized {
		t.Errorf("header %+v %q", h.Recording, h.Notes)
	}
	if got := about(changes, "Pod "); len(got) != 4 { // two pods are new, and one is deleted, in two steps

		t.Errorf("changes %q", got)
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ns, "stored-meanwhile", podName(0)} {
		if bytes.Contains(uncompress(t, text), []byte(name)) {
			t.Errorf("%s is left", name)
		}
	}
	gone := about(changes, "gone")
	opened, err := capture.OpenRecording(r.file)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	if err := opened.Each(func(kind *snapshot.Kind, _ string, o map[string]any) error {
		metadata, _ := o["metadata"].(map[string]any)
		found = found || len(gone) > 0 && gone[0] == fmt.Sprint(kind.Name, " ", metadata["name"], " gone")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("the snapshot does not have the pod of %q", gone)
	}
}
