//go:build linux

package plugins

import (
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// Wherever a plugin panics the scheduler ends, with the place in its log; what was bound stays bound, the pod in flight is scheduled
// by the next scheduler once nothing makes the plugin panic, and until then that one ends too.
func TestAPluginThatPanicsEndsTheScheduler(t *testing.T) {
	t.Parallel()
	built := buildScheduler(t.Context(), t) // for the first time that takes minutes
	ctx := testContext(t)
	kube := server.Client(t)
	for _, name := range []string{"panics-1", "panics-2"} {
		createReadyNode(ctx, t, kube, name)
	}
	for _, point := range []string{"preFilter", "filter", "preBind", "postBind"} {
		t.Run(point, func(t *testing.T) {
			namespace := "panics-" + strings.ToLower(point)
			s := newSchedulerProcess(t, built, "", namespace, profiles.Plugin{Name: "Panics"})
			s.start(t)
			createNamespace(ctx, t, kube, namespace)
			schedule(ctx, t, kube, namespace, "before", nil)
			awaitBound(ctx, t, kube, namespace, "before")

			schedule(ctx, t, kube, namespace, "trigger", map[string]string{"panic": point})
			s.endsWith(ctx, t, "panic: broken at "+point, "panics.go")
			if point == "postBind" {
				awaitBound(ctx, t, kube, namespace, "trigger")
			} else {
				s.start(t)
				s.endsWith(ctx, t, "panic: broken at "+point)
			}
			patch := []byte(`{"metadata": {"labels": {"panic": null}}}`)
			if _, err := kube.CoreV1().Pods(namespace).Patch(ctx, "trigger", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			schedule(ctx, t, kube, namespace, "after", nil)
			s.start(t)
			for _, pod := range []string{"before", "trigger", "after"} {
				awaitBound(ctx, t, kube, namespace, pod)
			}
		})
	}
}

// buildScheduler builds the kube-scheduler of the API server's release with the plugins of these tests.
func buildScheduler(ctx context.Context, t *testing.T) *build.Result {
	t.Helper()
	cache, err := apiserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	result, err := build.Run(ctx, build.Options{
		Release: wanted(t), Plugins: []plugins.Plugin{{Dir: "testdata/panics"}, {Builtin: "loadaware"}, {Builtin: "coscheduling"}, {Builtin: "elasticquota"}, {Builtin: "gpupacking"}, {Builtin: "numaaware"}}, Sources: pmksched.Sources, CacheDir: cache, Env: os.Environ(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}
