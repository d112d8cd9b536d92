//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// A pod over which a plugin panics is not bound, unless that happens at PostBind. The scheduler
// logs the stack, counts the panic, places other pods, and places that pod when the plugin does not
// panic over it anymore.
func TestAPanicOfAPluginIsAnErrorOfItsPod(t *testing.T) {
	t.Parallel()
	s := newSubject(t, apiserver.Release)
	for _, point := range []string{"PreFilter", "Filter", "PreBind", "PostBind"} {
		t.Run(point, func(t *testing.T) {
			label := strings.ToLower(point[:1]) + point[1:]
			x := s.start(t, "panics-"+strings.ToLower(point), profiles.Plugin{Name: "Panics"}, nil)
			x.node(t, "1", nil, nil)
			trigger := x.pod("trigger", nil)
			trigger.Labels = map[string]string{"panic": label}
			x.create(t, trigger)
			x.awaitPanic(t, point, "plugin Panics panicked at "+point+": broken at "+label)
			if point != "PostBind" {
				x.awaitRejected(t, "trigger", "Panics") // 1.24 loses the message of an error of PreFilter
			}
			x.create(t, x.pod("other", nil))
			x.awaitBound(t, "other")
			patch := []byte(`{"metadata": {"labels": {"panic": null}}}`)
			if _, err := x.Kube.CoreV1().Pods(x.name).Patch(t.Context(), "trigger", types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			x.awaitBound(t, "trigger")
		})
	}
}

// awaitPanic waits until the scheduler has counted a panic and logged it with the stack.
func (x *cluster) awaitPanic(t *testing.T, point, message string) {
	t.Helper()
	run.Eventually(t, "a panic is counted", func(ctx context.Context) (bool, string) {
		metrics, err := controlplane.ReadMetrics(ctx, x.metrics)
		return metrics.By(t, "pmk_sched_plugin_panics_total", "extension_point")[point] > 0, fmt.Sprint(err)
	})
	run.Eventually(t, fmt.Sprintf("its log has %q and the stack", message), func(context.Context) (bool, string) {
		log := x.scheduler.Log()
		return strings.Contains(log, message) && strings.Contains(log, "panics.go"), log[max(0, len(log)-8<<10):]
	})
}
