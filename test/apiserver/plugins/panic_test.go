//go:build linux

package plugins

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// When a plugin panics at any extension point, the scheduler ends, with the stack trace in its log.
// Bound pods stay bound. The next scheduler ends too, until the plugin no longer panics; then it
// schedules the pod in flight.
func TestAPluginThatPanicsEndsTheScheduler(t *testing.T) {
	t.Parallel()
	s := newSubject(t, apiserver.Release)
	for _, point := range []string{"preFilter", "filter", "preBind", "postBind"} {
		t.Run(point, func(t *testing.T) {
			x := s.start(t, "panics-"+strings.ToLower(point), profiles.Plugin{Name: "Panics"}, nil)
			x.node(t, "1", nil, nil)
			x.create(t, x.pod("before", nil))
			x.awaitBound(t, "before")

			trigger := x.pod("trigger", nil)
			trigger.Labels = map[string]string{"panic": point}
			x.create(t, trigger)
			x.panics(t, "panic: broken at "+point, "panics.go")
			if point == "postBind" {
				x.awaitBound(t, "trigger")
			} else {
				x.scheduler.Start()
				x.panics(t, "panic: broken at "+point)
			}
			patch := []byte(`{"metadata": {"labels": {"panic": null}}}`)
			if _, err := x.Kube.CoreV1().Pods(x.name).Patch(t.Context(), "trigger", types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			x.create(t, x.pod("after", nil))
			x.scheduler.Start()
			x.awaitBound(t, "before", "trigger", "after")
		})
	}
}

// panics waits until the scheduler has ended, as Go programs do that panic, and looks for texts in
// its log.
func (x *cluster) panics(t *testing.T, texts ...string) {
	t.Helper()
	if code := x.scheduler.AwaitEnd(t.Context()); code != 2 {
		t.Errorf("exit status %d", code)
	}
	log := x.scheduler.Log()
	for _, text := range texts {
		if !strings.Contains(log, text) {
			t.Errorf("its log lacks %q:\n%s", text, log)
		}
	}
}
