package elasticquota

import (
	"context"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// No event of the cluster has the pod retried that borrows.
func TestPodsAreRetriedWhenRoomIsNoLongerKept(t *testing.T) {
	for name, end := range map[string]func(*world, context.Context){
		"the pod gets another node": func(w *world, ctx context.Context) {
			w.plugin.Reserve(ctx, nil, w.newPod("a", "new", "2", 0), "n-1")
		},
		"another pod has used up the quota of the pod": func(w *world, ctx context.Context) {
			w.run("n-1", "a", "full", 9, "1", 0)
			_, status := w.plugin.PreFilter(ctx, plugintest.NewState(), w.newPod("a", "new", "2", 0))
			if got := status.String(); !strings.Contains(got, "no more than") {
				t.Errorf("got %s", got)
			}
		},
		"another plugin rejects the pod before nodes are tried": func(w *world, ctx context.Context) {
			w.plugin.PostFilter(ctx, plugintest.NewState(), w.newPod("a", "new", "2", 0), rejections{})
		},
		"the pod is deleted": func(w *world, _ context.Context) { w.plugin.forget(w.newPod("a", "new", "2", 0)) },
	} {
		w := newWorld(t, twoTeams, 2)
		w.run("n-0", "b", "b", 7, "1", 0)
		w.run("n-1", "other", "other", 8, "1", 0)
		if got := w.postFilter(w.newPod("a", "new", "2", 0), nil); got != "n-0 b-6" {
			t.Fatalf("got %q", got)
		}
		if err := w.store().Delete(w.newPod("a", "new", "2", 0)); err != nil { // so that it is not retried itself
			t.Fatal(err)
		}
		borrows, state := w.newPod("b", "borrows", "1", 0), plugintest.NewState()
		if err := w.store().Add(borrows); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if _, status := w.plugin.PreFilter(ctx, state, borrows); status != nil {
			t.Fatal(status)
		}
		if status := w.plugin.Filter(ctx, state, borrows, w.cluster.Nodes()[0]); status != w.plugin.kept {
			t.Fatalf("%s: got %v", name, status)
		}
		go w.plugin.retryKept(ctx)
		end(w, ctx)
		w.handle.AwaitActivated(t, "b/borrows")
	}
}

// The deletion of a pod may be handled while others are evicted for it.
func TestNoRoomIsKeptForAPodThatWasDeletedDuringTheEvictions(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	pod := w.newPod("a", "new", "1", 0)
	w.evicted.during = func() {
		if err := w.store().Delete(pod); err != nil {
			t.Error(err)
		}
		w.plugin.forget(pod)
	}
	if got := w.postFilter(pod, nil); got != "n-0 b-7" {
		t.Fatalf("got %q", got)
	}
	if kept := w.plugin.nominated.keptOn("n-0", ""); kept != nil {
		t.Errorf("%v is kept for a pod that is gone", kept)
	}
}
