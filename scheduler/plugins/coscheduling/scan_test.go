package coscheduling

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// newScanning returns a plugin with an informer that cannot take an index, as up to 1.24, and
// groups of 4 pods that are being placed.
func newScanning(t testing.TB, groups, others int) *Coscheduling {
	t.Helper()
	s, err := decode(scheduler.NewArguments(nil))
	if err != nil {
		t.Fatal(err)
	}
	h := &plugintest.Handle{}
	m, err := newMetrics(h.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1700000000, 0)
	c := newPlugin(s, m, h, func() time.Time { return now })
	c.swept = now
	c.pods = &pods{name: s.index(), scan: s.group, active: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil),
		succeeded: cache.NewIndexer(cache.MetaNamespaceKeyFunc, s.indexers())}
	add := func(name, group string) {
		if err := c.pods.active.Add(newPod(name, group, 4, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range groups {
		group := fmt.Sprint("group-", i)
		for j := range 4 {
			add(fmt.Sprint(group, "-", j), group)
		}
		g := c.gang("shop/" + group)
		g.assembling, g.deadline = true, now.Add(time.Hour)
	}
	for i := range others {
		add(fmt.Sprint("other-", i), "")
	}
	return c
}

func TestPodsAreFoundWithoutAnIndex(t *testing.T) {
	c := newScanning(t, 2, 3)
	leaving := newPod("group-0-3", "group-0", 4, 1)
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	for group, want := range map[string]int{"shop/group-0": 4, "shop/group-1": 4, "": 0, "shop/none": 0} {
		c.lock()
		if got := len(c.pods.of(group)); got != want {
			t.Errorf("group %q: %d pods, want %d", group, got, want)
		}
		c.mu.Unlock()
	}
	if err := c.pods.active.Update(leaving); err != nil {
		t.Fatal(err)
	}
	c.lock()
	defer c.mu.Unlock()
	if got := len(c.pods.of("shop/group-0")); got != 3 {
		t.Errorf("%d pods of the group, want 3 without the one that is being deleted", got)
	}
}

// BenchmarkExpireWithoutIndex measures a tick, during which the plugin is locked.
func BenchmarkExpireWithoutIndex(b *testing.B) {
	for _, groups := range []int{1, 300} {
		b.Run(fmt.Sprint("groups=", groups), func(b *testing.B) {
			c := newScanning(b, groups, 10000)
			for b.Loop() {
				if rejected := c.expire(b.Context()); len(rejected) > 0 {
					b.Fatal("a group is not placed")
				}
			}
		})
	}
}
