//go:build linux

package plugins

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// In a cluster without other events, a pod that LoadAware rejected is bound when the load falls, by
// a scheduler with only the permissions of system:kube-scheduler. While the load is high the pod is
// left alone.
func heldByLoad(t *testing.T, s subject) {
	load := startLoad(t, "held-1")
	load.percent.Store(95)
	x := s.start(t, "held", profiles.Plugin{Name: loadaware.Name, Args: fmt.Appendf(nil,
		`{prometheus: {url: %q}, interval: 200ms, staleAfter: 1m, metrics: [{name: memory, maxPercent: 85}]}`, load.URL)},
		nil)
	x.node(t, "1", nil, nil)
	load.awaitQueries(t, 1) // from here on the plugin rejects the node
	x.create(t, x.pod("web", nil))
	x.awaitRejected(t, "web", "memory load is 85% or more")
	rejected := x.get(t, "web")
	load.awaitQueries(t, 5)
	if now := x.get(t, "web"); now.ResourceVersion != rejected.ResourceVersion {
		t.Errorf("the pod changed while the load is high: %v", now)
	}
	x.wakes(t, "the load falls", func() { load.percent.Store(50) }, "web")
	if bound := x.get(t, "web"); bound.Annotations[scheduler.AnnotationActivated] == "" {
		t.Errorf("the pod was bound without LoadAware: annotations %v", bound.Annotations)
	}
	if log := x.scheduler.Log(); strings.Contains(log, "LoadAware cannot retry pods") ||
		strings.Contains(log, "is forbidden") {
		t.Errorf("log:\n%s", log)
	}
}

// loadServer answers every query with the load of one node, as Prometheus does.
type loadServer struct {
	*httptest.Server
	percent, queries atomic.Int64
}

func startLoad(t *testing.T, node string) *loadServer {
	t.Helper()
	l := &loadServer{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w,
			`{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"instance": %q}, "value": [%d, "%g"]}]}}`,
			node, time.Now().Unix(), float64(l.percent.Load())/100)
		l.queries.Add(1)
	}))
	t.Cleanup(l.Close)
	return l
}

// awaitQueries waits for n further queries, and so for the evaluation of all but the last.
func (l *loadServer) awaitQueries(t *testing.T, n int64) {
	t.Helper()
	until := l.queries.Load() + n + 1
	run.Eventually(t, "LoadAware queries the load", func(context.Context) (bool, string) {
		done := l.queries.Load()
		return done >= until, fmt.Sprint(done)
	})
}

// The rights of system:kube-scheduler are enough to activate a pod; a new pod of the same name is
// left alone, and so is all but the annotation.
func TestActivateChangesOnlyTheAnnotationOfThatPod(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	kube := server.Client(t)
	const namespace = "activated"
	old := createPods(ctx, t, kube, namespace, 1)[0]
	h := newHandle(t, server.ConfigFor("system:kube-scheduler"))
	if err := h.Activate(ctx, old); err != nil {
		t.Fatal(err)
	}
	got, err := kube.CoreV1().Pods(namespace).Get(ctx, old.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339Nano, got.Annotations[scheduler.AnnotationActivated]); err != nil ||
		len(got.Annotations) != len(old.Annotations)+1 {
		t.Errorf("annotations %v: %v", got.Annotations, err)
	}
	if diff := cmp.Diff([]any{old.Spec, old.Status, old.Labels, old.UID},
		[]any{got.Spec, got.Status, got.Labels, got.UID}); diff != "" {
		t.Errorf("the pod changed (-before +after):\n%s", diff)
	}

	now := int64(0)
	if err := kube.CoreV1().Pods(namespace).Delete(ctx, old.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if err := h.Activate(ctx, old); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
	if _, err := kube.CoreV1().Pods(namespace).Create(ctx, newPod(0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Activate(ctx, old); err != nil {
		t.Errorf("a pod that was created again: %v", err)
	}
	if got, err = kube.CoreV1().Pods(namespace).Get(ctx, old.Name, metav1.GetOptions{}); err != nil ||
		got.Annotations[scheduler.AnnotationActivated] != "" {
		t.Errorf("the new pod: %v, annotations %v", err, got.Annotations)
	}
}
