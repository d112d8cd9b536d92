package scheduler_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

var start = time.Unix(1000, 0)

// describe returns the pods of nodes as uid=value.
func describe(a *scheduler.AssumedPods, nodes ...string) string {
	var all []string
	for _, node := range nodes {
		for _, pod := range a.OnNode(node) {
			all = append(all, fmt.Sprintf("%s:%s=%v", pod.Node, pod.UID, pod.Value))
		}
	}
	return strings.Join(all, " ")
}

func TestAssumedPodsAreOnTheirNodeUntilTheyAreForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(a *scheduler.AssumedPods)
		want string
	}{
		"nothing changes": {func(*scheduler.AssumedPods) {}, "n1:a=1 n1:b=2 n2:c=3"},
		"forget":          {func(a *scheduler.AssumedPods) { a.Forget("a") }, "n1:b=2 n2:c=3"},
		"forget twice": {func(a *scheduler.AssumedPods) {
			a.Forget("c")
			a.Forget("c")
		}, "n1:a=1 n1:b=2"},
		"forget an unknown pod": {func(a *scheduler.AssumedPods) { a.Forget("z") }, "n1:a=1 n1:b=2 n2:c=3"},
		"assume again elsewhere": {func(a *scheduler.AssumedPods) {
			a.Assume(scheduler.AssumedPod{UID: "a", Node: "n2", Value: 4})
		}, "n1:b=2 n2:c=3 n2:a=4"},
		"a recreated pod has another UID": {func(a *scheduler.AssumedPods) {
			a.Assume(scheduler.AssumedPod{UID: "a-again", Node: "n1", Value: 5})
			a.Forget("a")
		}, "n1:b=2 n1:a-again=5 n2:c=3"},
		"update a node": {func(a *scheduler.AssumedPods) {
			a.Update("n1", func(pod *scheduler.AssumedPod) bool {
				pod.Value = 9
				return pod.UID != "b"
			})
		}, "n1:a=9 n2:c=3"},
		"update all nodes": {func(a *scheduler.AssumedPods) {
			a.Update("", func(pod *scheduler.AssumedPod) bool { return pod.Value == 2 })
		}, "n1:b=2"},
		"update an unknown node": {func(a *scheduler.AssumedPods) {
			a.Update("n3", func(*scheduler.AssumedPod) bool { return false })
		}, "n1:a=1 n1:b=2 n2:c=3"},
	} {
		t.Run(name, func(t *testing.T) {
			var a scheduler.AssumedPods
			for i, pod := range []struct{ uid, node string }{{"a", "n1"}, {"b", "n1"}, {"c", "n2"}} {
				a.Assume(scheduler.AssumedPod{UID: types.UID(pod.uid), Node: pod.node, Value: i + 1})
			}
			c.do(&a)
			got := describe(&a, "n1", "n2")
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if n := len(strings.Fields(c.want)); a.Len() != n {
				t.Errorf("got length %d, want %d", a.Len(), n)
			}
			for _, node := range []string{"n1", "n2"} {
				for _, pod := range a.OnNode(node) {
					if same, ok := a.Get(pod.UID); !ok || same != pod {
						t.Errorf("Get returns %v, %v; want %v", same, ok, pod)
					}
				}
			}
		})
	}
}

func TestAssumedPodsExpire(t *testing.T) {
	var a scheduler.AssumedPods
	a.Assume(scheduler.AssumedPod{UID: "never", Node: "n1", Value: 1})
	a.Assume(scheduler.AssumedPod{UID: "soon", Node: "n1", Value: 2, Expires: start.Add(time.Second)})
	a.Assume(scheduler.AssumedPod{UID: "later", Node: "n1", Value: 3, Expires: start.Add(time.Minute)})
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "n1:never=1 n1:soon=2 n1:later=3"},
		{time.Second, "n1:never=1 n1:soon=2 n1:later=3"},
		{time.Second + 1, "n1:never=1 n1:later=3"},
		{time.Hour, "n1:never=1"},
	} {
		a.Expire(start.Add(c.after))
		if got := describe(&a, "n1"); got != c.want {
			t.Errorf("after %s: got %s, want %s", c.after, got, c.want)
		}
	}
}

func TestAListOfAssumedPodsDoesNotChange(t *testing.T) {
	var a scheduler.AssumedPods
	a.Assume(scheduler.AssumedPod{UID: "a", Node: "n1"})
	before := a.OnNode("n1")
	a.Assume(scheduler.AssumedPod{UID: "b", Node: "n1"})
	a.Update("n1", func(pod *scheduler.AssumedPod) bool {
		pod.Value = 1
		return true
	})
	a.Forget("a")
	if len(before) != 1 || before[0].UID != "a" || before[0].Value != nil {
		t.Errorf("the list has changed: %v", before)
	}
}

func TestAssumedPodsOfConcurrentCallers(t *testing.T) {
	var a scheduler.AssumedPods
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			uid := types.UID(fmt.Sprint(i))
			for range 100 {
				a.Assume(scheduler.AssumedPod{UID: uid, Node: "n1"})
				if _, ok := a.Get(uid); !ok {
					t.Errorf("pod %s is not assumed", uid)
				}
				a.Expire(start)
				a.Forget(uid)
			}
		})
	}
	group.Wait()
	if got := describe(&a, "n1"); got != "" || a.Len() != 0 {
		t.Errorf("left: %s", got)
	}
}
