package elasticquota

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

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

func TestRoomIsKeptForSomeTime(t *testing.T) {
	for name, kept := range map[string]func(*nominations) bool{
		"of any pod":    func(n *nominations) bool { return !n.none() },
		"of the pod":    func(n *nominations) bool { _, _, ok := n.get("p"); return ok },
		"on the node":   func(n *nominations) bool { return n.keptOn("n-0", "") != nil },
		"until dropped": func(n *nominations) bool { n.drop("unknown"); return n.keptOn("n-0", "") != nil },
	} {
		now := time.Unix(1000, 0)
		n := newNominations(func() time.Time { return now })
		n.add("p", "n-0", amountsOf("1", "1Gi"), nil)
		now = now.Add(nominationTime)
		if !kept(n) || len(n.freed) > 0 {
			t.Errorf("%s: no room is kept at the end of the time", name)
		}
		now = now.Add(1)
		// The pods that did not get the room are retried.
		if kept(n) || n.pods.Len() > 0 || len(n.freed) != 1 {
			t.Errorf("%s: room is kept after the time", name)
		}
	}
}

func TestRoomOnANodeIsThatOfAllOtherPods(t *testing.T) {
	n := newNominations(time.Now)
	n.add("p", "n-0", amountsOf("1", "1Gi"), nil)
	n.add("q", "n-0", amountsOf("2", "2Gi"), nil)
	n.add("r", "n-0", amountsOf("4", "4Gi"), nil)
	n.add("s", "n-1", amountsOf("8", "8Gi"), nil)
	for pod, want := range map[string]amounts{"": amountsOf("7", "7Gi"), "q": amountsOf("5", "5Gi")} {
		if diff := cmp.Diff(want, n.keptOn("n-0", types.UID(pod))); diff != "" {
			t.Errorf("without %q (-want +got):\n%s", pod, diff)
		}
	}
}

func TestEvictionsForAPodEndAfterSomeRounds(t *testing.T) {
	now := time.Unix(1000, 0)
	n := newNominations(func() time.Time { return now })
	for i, step := range []struct {
		do   func()
		want bool
	}{
		{func() {}, true},
		{func() { n.abandon("p"); n.abandon("p"); n.abandon("p") }, true}, // no room was kept
		{func() { n.add("p", "n-0", nil, nil); n.abandon("p") }, true},
		{func() { n.fail("p", true) }, true},
		{func() { n.fail("p", true) }, false},
		{func() { now = now.Add(retryTime - 1) }, false},
		{func() { now = now.Add(1) }, true},
		{func() { n.fail("p", true) }, true}, // the first one of as many rounds
		{func() { n.fail("p", false) }, false},
		{func() { n.forget("p") }, true},
	} {
		if step.do(); n.mayEvict("p") != step.want {
			t.Errorf("step %d: %t", i, !step.want)
		}
	}
}
