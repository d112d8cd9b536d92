package coscheduling

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

const soon = 10 * time.Second

func TestGangIsPlacedAsAWhole(t *testing.T) {
	w := newWorld(t, "", 2, 2)
	w.createGang("a", 4, 1)
	w.run(soon, func() bool { return w.countPods("a", placed) == 4 })
}

// Three of four would fit, on nodes whose free room in total is enough for four.
func TestGangIsNotPlacedInPart(t *testing.T) {
	w := newWorld(t, "", 4, 4, 4)
	w.createGang("a", 4, 3)
	w.run(5*time.Minute, nil)
	if len(w.bound) > 0 {
		t.Errorf("bound: %v", w.bound)
	}
	w.addNode("new", 4)
	w.run(soon, func() bool { return w.countPods("a", placed) == 4 })
}

func TestOneOfTwoGangsThatExceedTheClusterIsPlaced(t *testing.T) {
	for _, old := range []bool{false, true} {
		for seed := range uint64(20) {
			w := newWorld(t, "", 2, 2, 2, 2, 2)
			w.old, w.random = old, rand.New(rand.NewPCG(seed, 0))
			w.createGang("a", 6, 1)
			w.createGang("b", 6, 1)
			w.run(soon, func() bool { return w.quiet() && w.countPods("", placed) == 6 })
			if n := w.attempts(resultPlaced); n != 1 || w.attempts(resultYielded)+w.attempts(resultUnplaced) > 0 {
				t.Errorf("seed %d: a group was tried without room: %v placed", seed, n)
			}
			first, second := "a", "b"
			if w.countPods("b", placed) > 0 {
				first, second = "b", "a"
			}
			if n := w.countPods(first, placed); n != 6 {
				t.Fatalf("seed %d: %d pods of %s are placed:\n%s", seed, n, first, w)
			}
			w.run(time.Minute, nil)
			w.remove(first)
			w.run(15*time.Second, func() bool { return w.countPods(second, placed) == 6 })
		}
	}
}

// In total there is room for both groups, but not on the nodes: one of the large pods is left over.
// The groups have to make way for each other.
func TestGangsThatGetInEachOthersWayArePlacedInTurn(t *testing.T) {
	yielded := 0.0
	for _, old := range []bool{false, true} {
		for seed := range uint64(50) {
			w := newWorld(t, "", 3, 3, 3, 3)
			w.old, w.random = old, rand.New(rand.NewPCG(seed, 0))
			w.createGang("a", 3, 2)
			w.createGang("b", 3, 2)
			w.run(time.Minute, func() bool { return w.quiet() && w.countPods("", placed) == 3 })
			if a := w.countPods("a", placed); a != 0 && a != 3 {
				t.Fatalf("seed %d: %d pods of a are placed:\n%s", seed, a, w)
			}
			yielded += w.attempts(resultYielded)
			w.remove([]string{"b-", "a-"}[w.countPods("a", placed)/3])
			w.run(20*time.Second, func() bool { return w.countPods("", placed) == 3 })
		}
	}
	if yielded < 20 {
		t.Errorf("groups made room for each other %v times", yielded)
	}
}

func TestGangThatIsTooLargeDoesNotStarveOthers(t *testing.T) {
	for name, pods := range map[string]int{"in total": 10, "for the nodes": 4} {
		for _, old := range []bool{false, true} {
			w := newWorld(t, "", 5, 5, 5)
			w.old = old
			w.createGang("huge", pods, 3)
			w.run(30*time.Second, nil)
			w.create(newPod("single", "", 0, 5))
			w.createGang("small", 2, 4)
			w.run(time.Minute, func() bool { return w.countPods("single", placed) == 1 && w.countPods("small", placed) == 2 })
			if n := w.countPods("huge", placed); n != 0 {
				t.Errorf("%s: %d pods of the gang are placed", name, n)
			}
		}
	}
}

func TestPodsWaitUntilTheirGangIsComplete(t *testing.T) {
	w := newWorld(t, "", 4)
	for i := range 3 {
		w.create(newPod(fmt.Sprintf("a-%d", i), "a", 4, 1))
	}
	w.run(time.Minute, nil)
	if !w.quiet() || len(w.bound) > 0 {
		t.Fatalf("an incomplete gang keeps nodes:\n%s", w)
	}
	w.create(newPod("a-3", "a", 4, 1))
	w.run(12*time.Second, func() bool { return w.countPods("a", placed) == 4 })
}

// A pod that found no room meanwhile is retried, also by schedulers that do not do so themselves.
func TestTimeoutEndsAnAttempt(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := newWorld(t, `{"timeout": "5s", "backoff": {"initial": "30s", "max": "40s"}}`, 4)
		w.old = old
		w.createGang("a", 4, 1)
		absent := w.pods["shop/a-3"]
		absent.state = placed // the scheduler does not try it, as if another plugin kept it out of the queue
		w.run(soon, func() bool { return w.countPods("a", waiting) == 3 })
		w.create(newPod("single", "", 0, 2))
		began := w.clock
		w.run(soon, func() bool { return w.countPods("single", placed) == 1 })
		if took := w.clock.Sub(began); took < 3*time.Second {
			t.Errorf("the gang kept its nodes for %s only", took)
		}
		if n := w.attempts(resultTimeout); n != 1 {
			t.Errorf("%v attempts ended because of the time", n)
		}
		w.remove("single")
		absent.state = queued
		w.run(40*time.Second, func() bool { return w.countPods("a", placed) == 4 })
	}
}

// The process can be paused for longer than the scheduler waits at Permit, and a pod of the group
// can be next when it continues.
func TestNoPodIsPermittedAfterTheDeadline(t *testing.T) {
	w := newWorld(t, "", 4)
	w.createGang("a", 4, 1)
	w.pods["shop/a-2"].state, w.pods["shop/a-3"].state = placed, placed // the scheduler does not try them
	w.run(soon, func() bool { return w.countPods("a", waiting) == 2 })
	late := w.pods["shop/a-2"]
	late.state = queued
	w.clock = w.clock.Add(time.Minute + slack)
	w.schedule(late)
	if len(w.bound) > 0 || late.state != unschedulable {
		t.Errorf("bound: %v; state %d", w.bound, late.state)
	}
	w.run(soon, w.quiet)
	if n := w.attempts(resultTimeout); n != 1 {
		t.Errorf("%v attempts ended because of the time", n)
	}
}

func TestAttemptEndsWhenAPodIsDeleted(t *testing.T) {
	w := newWorld(t, "", 4)
	w.createGang("a", 4, 1)
	w.pods["shop/a-3"].state = placed
	w.run(soon, func() bool { return w.countPods("a", waiting) == 3 })
	w.remove("a-0")
	w.run(time.Second, w.quiet)
	if len(w.bound) > 0 {
		t.Errorf("bound: %v", w.bound)
	}
}

func TestReplacedAndAdditionalPodsArePlacedAlone(t *testing.T) {
	w := newWorld(t, "", 4)
	w.createGang("a", 3, 1)
	w.run(soon, func() bool { return w.countPods("a", placed) == 3 })
	w.remove("a-1")
	w.create(newPod("a-again", "a", 3, 1))
	w.create(newPod("a-more", "a", 3, 1))
	w.run(time.Second, func() bool { return w.countPods("a", placed) == 4 })
}

// A Job's pods succeed one after the other. One that is replaced does not wait for those.
func TestPodsThatSucceededCount(t *testing.T) {
	w := newWorld(t, "", 3)
	w.createGang("a", 3, 1)
	w.run(soon, func() bool { return w.countPods("a", placed) == 3 })
	for _, name := range []string{"a-0", "a-1"} {
		done := newPod(name, "a", 3, 1)
		done.Status.Phase = corev1.PodSucceeded
		if err := w.Coscheduling.pods.succeeded.Add(done); err != nil {
			t.Fatal(err)
		}
	}
	w.remove("a-")
	w.create(newPod("a-again", "a", 3, 1))
	w.run(time.Second, func() bool { return w.countPods("a-again", placed) == 1 })
}

// A CronJob gives each run the same label, and the pods of the last run still exist.
func TestPodsOfAnEarlierRunDoNotCount(t *testing.T) {
	by := func(controller, jobSet string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			if controller != "" {
				yes := true
				pod.OwnerReferences = []metav1.OwnerReference{{UID: "ignored"}, {UID: types.UID(controller), Controller: &yes}}
			}
			if jobSet != "" {
				pod.Labels[labelJobSetUID] = jobSet
			}
		}
	}
	for name, c := range map[string]struct {
		earlier, now func(*corev1.Pod)
		counts       bool
	}{
		"the same Job":          {by("job-1", ""), by("job-1", ""), true},
		"the Job of a new run":  {by("job-1", ""), by("job-2", ""), false},
		"Jobs of a JobSet":      {by("job-1", "set-1"), by("job-2", "set-1"), true},
		"a new JobSet":          {by("job-1", "set-1"), by("job-2", "set-2"), false},
		"bare pods":             {by("", ""), by("", ""), true},
		"bare pods, then a Job": {by("", ""), by("job-1", ""), false},
	} {
		w := newWorld(t, "", 4)
		for i := range 3 {
			done := newPod(fmt.Sprint("done-", i), "a", 3, 1)
			c.earlier(done)
			if err := w.Coscheduling.pods.succeeded.Add(done); err != nil {
				t.Fatal(err)
			}
		}
		first := newPod("a-0", "a", 3, 1)
		c.now(first)
		w.create(first)
		w.run(5*time.Second, nil)
		if got := w.countPods("a", placed) == 1; got != c.counts {
			t.Errorf("%s: placed alone: %t", name, got)
		}
		for i := 1; i < 3; i++ {
			pod := newPod(fmt.Sprint("a-", i), "a", 3, 1)
			c.now(pod)
			w.create(pod)
		}
		w.run(30*time.Second, func() bool { return w.countPods("a", placed) == 3 })
	}
}

func TestGatedPodsDoNotCount(t *testing.T) {
	w := newWorld(t, "", 3)
	w.createGang("a", 3, 1)
	w.pods["shop/a-2"].state = placed
	w.pods["shop/a-2"].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "SchedulingGated"}}
	w.run(5*time.Second, nil)
	if !w.quiet() {
		t.Fatalf("the gang keeps nodes:\n%s", w)
	}
	w.pods["shop/a-2"].state = queued // its gates are removed; the condition is not up to date yet
	w.run(soon, func() bool { return w.countPods("a", placed) == 3 })
}

// Preemption makes room for a group of higher priority, which the free room alone does not have.
func TestRoomOfPodsThatCanBePreemptedCounts(t *testing.T) {
	w := newWorld(t, "", 3)
	w.create(newPod("low", "", 0, 2))
	w.run(time.Second, func() bool { return w.countPods("low", placed) == 1 })
	reason := func(high int32, policy corev1.PreemptionPolicy) string {
		var last string
		for i := range 3 {
			pod := newPod(fmt.Sprintf("p%d-%s-%d", high, policy, i), fmt.Sprintf("p%d-%s", high, policy), 3, 1)
			pod.Spec.Priority, pod.Spec.PreemptionPolicy = &high, &policy
			w.create(pod)
			w.pods[pod.UID].state = unschedulable
			_, status := w.PreFilter(t.Context(), plugintest.NewState(), pod)
			last = status.String()
		}
		return last
	}
	for _, test := range []struct {
		priority int32
		policy   corev1.PreemptionPolicy
		want     string
	}{
		{0, corev1.PreemptLowerPriority,
			"UnschedulableAndUnresolvable: pod group shop/p0-PreemptLowerPriority needs 3 of cpu, more than is free"},
		{5, corev1.PreemptNever, "UnschedulableAndUnresolvable: pod group shop/p5-Never needs 3 of cpu, more than is free"},
		{5, corev1.PreemptLowerPriority, "Success"},
	} {
		if got := reason(test.priority, test.policy); got != test.want {
			t.Errorf("priority %d, %s: %s", test.priority, test.policy, got)
		}
	}
}

func TestPodsAreTurnedAwayWithAReason(t *testing.T) {
	for _, test := range []struct {
		name   string
		labels map[string]string
		want   string
	}{
		{"no group", nil, "Success"},
		{"no size", map[string]string{
			"scheduling.x-k8s.io/pod-group": "g"},
			"pod group shop/g has no size: its pods have no label pmk-sched.io/min-member"},
		{"no number", map[string]string{
			"scheduling.x-k8s.io/pod-group": "g", "pmk-sched.io/min-member": "two"},
			`label pmk-sched.io/min-member of pod web must be 1 or more, not "two"`},
		{"incomplete", map[string]string{
			"scheduling.x-k8s.io/pod-group": "g", "pmk-sched.io/min-member": "2"}, "pod group shop/g has 1 of 2 pods"},
		{"one pod", map[string]string{"scheduling.x-k8s.io/pod-group": "g", "pmk-sched.io/min-member": "1"}, "Success"},
	} {
		w := newWorld(t, "", 4)
		pod := newPod("web", "", 0, 1)
		pod.Labels = test.labels
		w.create(pod)
		_, status := w.PreFilter(t.Context(), plugintest.NewState(), pod)
		if !strings.Contains(status.String(), test.want) {
			t.Errorf("%s: %s, want %q", test.name, status, test.want)
		}
	}
}

func TestPodGroupsHaveTheSize(t *testing.T) {
	w := newWorld(t, "", 4)
	w.groups = customresource.NewValues(readPodGroup, w.recounted)
	for i := range 3 {
		pod := newPod(fmt.Sprintf("a-%d", i), "a", 9, 1)
		delete(pod.Labels, "pmk-sched.io/min-member")
		w.create(pod)
	}
	w.run(5*time.Second, nil)
	if len(w.bound) > 0 {
		t.Fatalf("bound without a PodGroup: %v", w.bound)
	}
	spec := map[string]interface{}{"minMember": int64(3), "scheduleTimeoutSeconds": int64(7)}
	if err := w.groups.Set(podGroupObject("shop", "a", spec)); err != nil {
		t.Fatal(err)
	}
	w.run(12*time.Second, func() bool { return w.countPods("a", placed) == 3 })
}

// When a group is placed, the next one is retried, and that one's result retries the one after it.
// If a retry is lost, nothing else may happen.
func TestQueuedGroupsAreRetriedWhileNoGroupIsPlaced(t *testing.T) {
	w := newWorld(t, "", 4)
	pod := newPod("a-0", "a", 2, 1)
	w.create(pod)
	w.pods[pod.UID].state = placed // the scheduler ignores the retries
	g := w.gang("shop/a")
	s := g.state(pod)
	s.hold(w.clock)
	g.queued = true
	retries := 0
	for range 3 * int(stale/tick) {
		before := s.activated
		w.clock = w.clock.Add(tick)
		w.expire(t.Context())
		w.retryPods(t.Context())
		if s.activated != before {
			retries++
		}
	}
	if retries != 3 {
		t.Errorf("%d retries in %s", retries, 3*stale)
	}
}

// Binding runs in parallel with the scheduling of other pods, and so do the plugin's own
// goroutines.
func TestPluginIsUsedInParallel(t *testing.T) {
	node := &corev1.Node{}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000"),
		corev1.ResourcePods: resource.MustParse("1000")}
	h := &plugintest.Handle{NodeList: []scheduler.NodeInfo{plugintest.NewNode(node)}}
	c, err := New(t.Context(), scheduler.NewArguments([]byte("podGroups: Ignore")), h)
	if err != nil {
		t.Fatal(err)
	}
	indexer := h.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	var group sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("g%d", i)
		var members []*corev1.Pod
		for j := range 4 {
			members = append(members, newPod(fmt.Sprintf("%s-%d", name, j), name, 4, 1))
			if err := indexer.Add(members[j]); err != nil {
				t.Fatal(err)
			}
		}
		group.Go(func() {
			for range 50 {
				for j, pod := range members {
					cycle := plugintest.NewState()
					if _, status := c.PreFilter(t.Context(), cycle, pod); !status.IsSuccess() {
						t.Errorf("PreFilter of %s: %v", pod.Name, status)
					}
					c.Reserve(t.Context(), cycle, pod, "")
					if status, _ := c.Permit(t.Context(), cycle, pod, ""); (status.Code() == scheduler.CodeWait) != (j < 3) {
						t.Errorf("Permit of %s: %v", pod.Name, status)
					}
				}
				for _, pod := range members {
					c.Unreserve(t.Context(), nil, pod, "")
				}
			}
		})
	}
	group.Wait()
}

// A group is placed as a whole or not at all, and no group that fits waits forever, regardless of
// the pods that are created and deleted.
func TestGangsAreNeverPlacedInPart(t *testing.T) {
	for _, old := range []bool{false, true} {
		for seed := range uint64(25) {
			random := rand.New(rand.NewPCG(seed, 1))
			var nodes []int64
			for range 2 + random.IntN(6) {
				nodes = append(nodes, int64(2+random.IntN(6)))
			}
			w := newWorld(t, `{"timeout": "20s"}`, nodes...)
			w.old, w.random = old, random
			sizes := map[string]int{}
			for i := range 2 + random.IntN(5) {
				name := fmt.Sprintf("g%d", i)
				sizes[name] = 2 + random.IntN(5)
				w.createGang(name, sizes[name], int64(1+random.IntN(4)))
				if random.IntN(2) == 0 {
					w.create(newPod(fmt.Sprintf("single-%d", i), "", 0, int64(1+random.IntN(2))))
				}
				w.run(time.Duration(random.IntN(3000))*time.Millisecond, nil)
			}
			for range 20 {
				w.run(3*time.Minute, w.quiet)
				w.run(time.Duration(random.IntN(60))*time.Second, nil)
				w.run(time.Minute, w.quiet)
				for name, size := range sizes {
					if n := w.countPods(name+"-", placed); n != 0 && n != size {
						t.Fatalf("old %v, seed %d: %d of %d pods of %s are placed:\n%s", old, seed, n, size, name, w)
					}
					if w.countPods(name+"-", placed) == size {
						w.remove(name + "-")
						delete(sizes, name)
						break
					}
				}
			}
			w.remove("single")
			w.run(2*time.Minute, nil)
			for name, size := range sizes {
				if w.fits(name, size) && w.countPods(name+"-", placed) != size {
					t.Fatalf("old %v, seed %d: %s fits and is not placed:\n%s", old, seed, name, w)
				}
			}
		}
	}
}

// fits reports whether a group fits into the free room. The pods of a group are alike.
func (w *world) fits(group string, size int) bool {
	pod := w.pods[newPod(group+"-0", "", 0, 1).UID]
	if pod == nil || pod.state == placed {
		return false
	}
	slots := 0
	for _, free := range w.nodes {
		slots += int(free / pod.cpu)
	}
	return slots >= size
}

func TestPodsAreSignedByTheirGroup(t *testing.T) {
	w := newWorld(t, "")
	sign := func(pod *corev1.Pod) interface{} {
		part, status := w.Sign(t.Context(), pod)
		if !status.IsSuccess() {
			t.Error(status)
		}
		return part
	}
	if sign(newPod("a", "g", 2, 1)) != sign(newPod("b", "g", 2, 1)) ||
		sign(newPod("a", "g", 2, 1)) == sign(newPod("a", "", 2, 1)) {
		t.Error("pods are not signed by their group")
	}
}

func TestRulesAllowToReadPodGroupsUnlessTheyAreIgnored(t *testing.T) {
	patch := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}
	read := rbacv1.PolicyRule{APIGroups: []string{"scheduling.x-k8s.io"}, Resources: []string{"podgroups"},
		Verbs: []string{"get", "list", "watch"}}
	for args, want := range map[string][]rbacv1.PolicyRule{"": {patch, read}, "podGroups: Ignore": {patch}} {
		got, err := Rules(scheduler.NewArguments([]byte(args)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", args, err, diff)
		}
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	for args, want := range map[string]string{
		`{"group": "x"}`:                            "group",
		`{"groupLabel": "a b"}`:                     `groupLabel: "a b"`,
		`{"minMemberLabel": "/"}`:                   `minMemberLabel: "/"`,
		`{"podGroups": "Always"}`:                   `podGroups: "Always" is neither Auto nor Ignore`,
		`{"timeout": "1"}`:                          `timeout: "1" is not a duration`,
		`{"timeout": "15m"}`:                        "timeout: 15m must be between 1s and 14m0s",
		`{"backoff": {"initial": ""}}`:              `backoff.initial: ""`,
		`{"backoff": {"initial": "2m"}}`:            "backoff.max: 1m must not be shorter than backoff.initial, 2m",
		`{"groupLabel": "pmk-sched.io/min-member"}`: "minMemberLabel: must differ",
	} {
		_, err := Rules(scheduler.NewArguments([]byte(args)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestBackoffDoubles(t *testing.T) {
	s, err := decode(scheduler.NewArguments([]byte(`{"backoff": {"initial": "5s", "max": "30s"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second,
		4: 30 * time.Second, 99: 30 * time.Second} {
		if got := s.backoff(failures); got != want {
			t.Errorf("after %d failures: %s", failures, got)
		}
	}
}
