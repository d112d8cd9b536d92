package elasticquota

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// twoTeams have 4 cores each, and may use 8.
const twoTeams = `
quotas:
- {name: a, namespaces: [a, a2], min: {cpu: 4}, max: {cpu: 8}}
- {name: b, namespaces: [b], min: {cpu: 4}, max: {cpu: 8}}
elasticQuotas: Ignore
`

// world is a plugin with nodes of 8 cores.
type world struct {
	t       *testing.T
	plugin  *ElasticQuota
	cluster *plugintest.Cluster
	handle  *plugintest.Handle
	evicted *evictions
	now     time.Time
	age     int
}

// evictions records victims and marks them as being deleted. It refuses some, at the dry run or
// only at the eviction, and loses some: these are evicted and not deleted.
type evictions struct {
	refused, failing, lost map[string]bool
	tries                  int // how often all victims of a choice were tried
	victims                []string
	// during is called at each eviction. It may be nil.
	during func()
}

func (e *evictions) tryAll(_ context.Context, victims []*corev1.Pod) (*corev1.Pod, error) {
	e.tries++
	for _, victim := range victims {
		if e.refused[victim.Name] {
			return victim, nil
		}
	}
	return nil, nil
}

func (e *evictions) evict(_ context.Context, victim *corev1.Pod) error {
	if e.failing[victim.Name] {
		return fmt.Errorf("evict pod %s: refused", victim.Name)
	}
	e.victims = append(e.victims, victim.Name)
	if e.during != nil {
		e.during()
	}
	if now := metav1.Now(); !e.lost[victim.Name] {
		victim.DeletionTimestamp = &now
	}
	return nil
}

func newWorld(t *testing.T, args string, nodes int) *world {
	t.Helper()
	a, fixed, err := decode(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	template.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	w := &world{t: t, cluster: plugintest.NewCluster(nodes, template),
		evicted: &evictions{refused: map[string]bool{}, failing: map[string]bool{}, lost: map[string]bool{}},
		now:     time.Unix(1000, 0)}
	w.handle = &plugintest.Handle{NodeList: w.cluster.Nodes()}
	w.plugin = newPlugin(a, fixed, w.handle, func() time.Time { return w.now })
	w.plugin.evict = w.evicted
	if w.plugin.evictions, err = newMetrics(w.handle.Metrics(), w.plugin.quotas, w.plugin.usage); err != nil {
		t.Fatal(err)
	}
	return w
}

// newPod returns a pod, newer than those before.
func (w *world) newPod(namespace, name, cpu string, priority int32) *corev1.Pod {
	w.age++
	pod := plugintest.NewPod(namespace, name, plugintest.Requests(cpu, "1Gi"))
	pod.Spec.Priority = &priority
	pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(w.age), 0))
	return pod
}

// run binds a number of pods to a node: NAME-0 and so on.
func (w *world) run(node, namespace, name string, count int, cpu string, priority int32, labels ...string) {
	for i := 0; i < count; i++ {
		pod := w.newPod(namespace, fmt.Sprintf("%s-%d", name, i), cpu, priority)
		for _, label := range labels {
			pod.Labels = map[string]string{label: "false"}
		}
		w.cluster.Place(pod, node)
		if err := w.store().Add(pod); err != nil {
			w.t.Fatal(err)
		}
		w.plugin.usage.observe(pod)
	}
}

// leave marks a pod on a node as being deleted.
func (w *world) leave(node, pod int) {
	now := metav1.Now()
	w.cluster.Nodes()[node].Pod(pod).DeletionTimestamp = &now
}

// store returns the store of the pod informer.
func (w *world) store() cache.Store {
	return w.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore()
}

// rejections are the statuses that the filters of a scheduler return for nodes.
type rejections map[string]*scheduler.Status

func (r rejections) Status(node string) *scheduler.Status {
	if status, ok := r[node]; ok {
		return status
	}
	return scheduler.Unschedulable("Insufficient cpu")
}

// postFilter runs PreFilter and PostFilter, as for a pod that no node has room for.
func (w *world) postFilter(pod *corev1.Pod, rejected rejections) string {
	w.t.Helper()
	state := plugintest.NewState()
	if _, status := w.plugin.PreFilter(context.Background(), state, pod); status != nil &&
		status.Code() != scheduler.CodeSkip {
		return status.String()
	}
	if err := w.store().Add(pod); err != nil {
		w.t.Fatal(err)
	}
	w.evicted.victims = nil
	node, status := w.plugin.PostFilter(context.Background(), state, pod, rejected)
	if status.Code() == scheduler.CodeError {
		node = status.String()
	} else if (node == "") != (status.Code() == scheduler.CodeUnschedulable) {
		w.t.Errorf("node %q with status %v", node, status)
	}
	sort.Strings(w.evicted.victims)
	return strings.Join(append([]string{node}, w.evicted.victims...), " ")
}

func TestWhoIsEvictedForWhom(t *testing.T) {
	const spared = "pmk-sched.io/preemptible"
	cases := map[string]struct {
		fill     func(w *world)
		cpu      string
		priority int32
		rejected rejections
		want     string
	}{
		"the newest pod that borrows, regardless of priority": {
			fill: func(w *world) { w.run("n-0", "b", "b", 8, "1", 100) }, cpu: "1", want: "n-0 b-7",
		},
		"as many pods as are needed": {
			fill: func(w *world) { w.run("n-0", "b", "b", 8, "1", 100) }, cpu: "3", want: "n-0 b-5 b-6 b-7",
		},
		"one large pod that borrows": {
			fill: func(w *world) { w.run("n-0", "b", "b", 1, "8", 0) }, cpu: "1", want: "n-0 b-0",
		},
		"no pod that is guaranteed": {
			fill: func(w *world) { w.run("n-0", "b", "b", 4, "1", -10); w.run("n-0", "other", "other", 4, "1", 100) }, cpu: "1",
			priority: 50, want: "",
		},
		"a pod without a team, of lower priority": {
			fill: func(w *world) { w.run("n-0", "b", "b", 4, "1", -10); w.run("n-0", "other", "other", 4, "1", 10) }, cpu: "1",
			priority: 50, want: "n-0 other-3",
		},
		"no pod of the own team, of the same priority": {
			fill: func(w *world) { w.run("n-0", "a", "a", 3, "1", 0); w.run("n-0", "other", "other", 5, "1", 0) }, cpu: "1",
			want: "",
		},
		"a pod of the own team, of lower priority": {
			fill: func(w *world) { w.run("n-0", "a2", "a", 3, "1", -1); w.run("n-0", "other", "other", 5, "1", 0) }, cpu: "1",
			want: "n-0 a-2",
		},
		"no pod that borrows, for another one that would borrow": {
			fill: func(w *world) { w.run("n-0", "a", "a", 2, "1", 0); w.run("n-0", "b", "b", 6, "1", 0) }, cpu: "3", want: "",
		},
		"a pod that borrows, for one of higher priority that would borrow": {
			fill: func(w *world) { w.run("n-0", "a", "a", 2, "1", 5); w.run("n-0", "b", "b", 6, "1", 0) }, cpu: "3", priority: 5,
			want: "",
		},
		"pods that borrow, of lower priority, and not those that are guaranteed": {
			fill: func(w *world) { w.run("n-0", "a", "a", 3, "1", 5); w.run("n-0", "b", "b", 5, "1", 0) }, cpu: "2", priority: 5,
			want: "",
		},
		"a pod that is protected by its label is spared": {
			fill: func(w *world) { w.run("n-0", "b", "old", 4, "1", 0); w.run("n-0", "b", "new", 4, "1", 0, spared) }, cpu: "1",
			want: "n-0 old-3",
		},
		"a pod that a PodDisruptionBudget protects is spared": {
			fill: func(w *world) { w.run("n-0", "b", "b", 8, "1", 0); w.evicted.refused["b-7"] = true }, cpu: "1",
			want: "n-0 b-6",
		},
		"nothing if all are protected": {
			fill: func(w *world) { w.run("n-0", "b", "b", 1, "8", 0); w.evicted.refused["b-0"] = true }, cpu: "1", want: "",
		},
		"on the node with the lowest priority": {
			fill: func(w *world) { w.run("n-0", "b", "x", 1, "8", 9); w.run("n-1", "b", "y", 1, "8", 2) }, cpu: "1",
			want: "n-1 y-0",
		},
		"on the node with the fewest": {
			fill: func(w *world) { w.run("n-0", "b", "x", 8, "1", 0); w.run("n-1", "b", "y", 4, "2", 0) }, cpu: "2",
			want: "n-1 y-3",
		},
		"on the node with the first name": {
			fill: func(w *world) {
				w.run("n-1", "b", "y", 1, "8", 0)
				w.run("n-0", "b", "x", 1, "8", 0)
				slices.Reverse(w.handle.NodeList)
			}, cpu: "1", want: "n-0 x-0",
		},
		"on the node where a pod leaves anyway": {
			fill: func(w *world) { w.run("n-0", "b", "x", 8, "1", 0); w.run("n-1", "b", "y", 8, "1", 0); w.leave(1, 7) },
			cpu:  "1", want: "n-1",
		},
		"on the node where a pod leaves anyway, the first one": {
			fill: func(w *world) { w.run("n-0", "b", "x", 8, "1", 0); w.run("n-1", "b", "y", 8, "1", 0); w.leave(0, 7) },
			cpu:  "1", want: "n-0",
		},
		"on the node that is the first one where a pod leaves anyway": {
			fill: func(w *world) {
				w.run("n-0", "b", "x", 8, "1", 0)
				w.run("n-1", "b", "y", 8, "1", 0)
				w.leave(0, 7)
				w.leave(1, 7)
			}, cpu: "1", want: "n-0",
		},
		"no one if a pod that leaves does not make enough room": {
			fill: func(w *world) { w.run("n-0", "other", "other", 8, "1", 100); w.leave(0, 7) }, cpu: "2", want: "",
		},
		"not on a node that was rejected for another reason": {
			fill: func(w *world) { w.run("n-0", "b", "x", 1, "8", 0); w.run("n-1", "b", "y", 8, "1", 0) }, cpu: "1",
			rejected: rejections{"n-0": scheduler.Unschedulable("Insufficient cpu",
				"node(s) didn't match pod anti-affinity rules"), "n-1": scheduler.Unresolvable("Insufficient cpu")},
			want: "",
		},
		"no one if what is missing does not come free": {
			fill: func(w *world) { w.run("n-0", "b", "b", 4, "1m", 0); w.run("n-0", "other", "other", 1, "8", 100) }, cpu: "1",
			want: "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := 1
			if strings.HasPrefix(name, "on the node") || strings.HasPrefix(name, "not on") {
				nodes = 2
			}
			w := newWorld(t, twoTeams, nodes)
			tc.fill(w)
			if got := w.postFilter(w.newPod("a", "new", tc.cpu, tc.priority), tc.rejected); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPodsThatBorrowAreEvictedByPriorityOnly(t *testing.T) {
	w := newWorld(t, twoTeams, 2)
	w.run("n-0", "b", "b", 8, "1", 0)
	w.run("n-1", "a", "a", 4, "1", 0)
	w.run("n-1", "other", "other", 1, "4", 100)
	if got := w.postFilter(w.newPod("a", "equal", "1", 0), nil); got != "" {
		t.Errorf("of the same priority: %q", got)
	}
	// The pods of the own team are the newest ones of the same priority.
	if got := w.postFilter(w.newPod("a", "higher", "1", 1),
		rejections{"n-1": scheduler.Unresolvable("tainted")}); got != "n-0 b-7" {
		t.Errorf("of higher priority: %q", got)
	}
}

func TestNothingIsEvictedWithoutPreemption(t *testing.T) {
	w := newWorld(t, twoTeams+"preemption: Never\n", 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	if got := w.postFilter(w.newPod("a", "new", "1", 0), nil); got != "" {
		t.Errorf("preemption: Never: %q", got)
	}
	w = newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	never, pod := corev1.PreemptNever, w.newPod("a", "new", "1", 0)
	pod.Spec.PreemptionPolicy = &never
	if got := w.postFilter(pod, nil); got != "" {
		t.Errorf("preemptionPolicy: Never: %q", got)
	}
	if got := w.postFilter(w.newPod("other", "new", "1", 1000), nil); got != "" {
		t.Errorf("a pod without a team: %q", got)
	}
}

func TestRoomIsKeptUntilTheVictimsAreGone(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 7, "1", 0)
	pod := w.newPod("a", "new", "2", 0)
	if got := w.postFilter(pod, nil); got != "n-0 b-6" {
		t.Fatalf("got %q", got)
	}
	if got := w.postFilter(pod, nil); got != "n-0" {
		t.Errorf("while the victim is being deleted: %q", got)
	}
	filter := func(pod *corev1.Pod) string {
		state := plugintest.NewState()
		if _, status := w.plugin.PreFilter(context.Background(), state, pod); status != nil {
			return status.String()
		}
		return w.plugin.Filter(context.Background(), state, pod, w.cluster.Nodes()[0]).String()
	}
	if got := filter(w.newPod("b", "borrows", "1", 100)); got != "Unschedulable: "+reasonKept {
		t.Errorf("a pod that borrows gets the room: %s", got)
	}
	if got := filter(w.newPod("b", "memory", "0", 100)); got != "Success" {
		t.Errorf("a pod for which there is room besides does not get it: %s", got)
	}
	if got := filter(pod); got != "Success" {
		t.Errorf("the pod does not get its room: %s", got)
	}
	if got := filter(w.newPod("a", "guaranteed", "1", 0)); got != "Success" {
		t.Errorf("a pod within its quota does not get the room: %s", got)
	}
	w.plugin.Reserve(context.Background(), nil, pod, "n-0")
	if got := filter(w.newPod("b", "borrows", "1", 100)); got != "Success" {
		t.Errorf("after the pod has a node, room is kept: %s", got)
	}
}

// With one disruption left in a PodDisruptionBudget, the dry run of each of two evictions passes.
func TestPodWaitsOnlyForVictimsThatWereEvicted(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	pod := w.newPod("a", "new", "2", 0)
	w.evicted.failing["b-6"] = true
	step := func(when, want string) {
		t.Helper()
		if got := w.postFilter(pod, nil); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	w.evicted.failing["b-7"] = true
	step("all evictions fail", "Error: evict pod b-7: refused")
	if kept := w.plugin.nominated.keptOn("n-0", ""); kept != nil {
		t.Errorf("%v is kept although nobody was evicted", kept)
	}
	delete(w.evicted.failing, "b-7")
	step("an eviction fails", "Error: evict pod b-6: refused b-7")
	step("while the other victim is being deleted", "n-0")
	w.plugin.forget(w.cluster.Nodes()[0].Pod(7))
	step("when it is gone", "Error: evict pod b-6: refused")
	delete(w.evicted.failing, "b-6")
	step("when the eviction is allowed", "n-0 b-6")
}

func TestVictimThatIsNotDeletedIsEvictedAgain(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	pod := w.newPod("a", "new", "1", 0)
	w.evicted.lost["b-7"] = true
	for i := range 3 {
		if got := w.postFilter(pod, nil); got != "n-0 b-7" {
			t.Fatalf("attempt %d: %q", i, got)
		}
	}
	w.evicted.failing["b-7"], w.evicted.refused["b-7"] = true, true
	if got := w.postFilter(pod, nil); got != "n-0 b-6" {
		t.Errorf("when its eviction is refused: %q", got)
	}
}

func TestPodDoesNotWaitForVictimsForever(t *testing.T) {
	w := newWorld(t, twoTeams, 2)
	w.run("n-0", "b", "b", 8, "1", 0)
	w.run("n-1", "other", "other", 8, "1", -1)
	w.evicted.refused["other-7"] = true
	pod := w.newPod("a", "new", "1", -5)
	if got := w.postFilter(pod, nil); got != "n-0 b-7" {
		t.Fatalf("got %q", got)
	}
	drained := rejections{"n-0": scheduler.Unresolvable("node(s) were unschedulable")}
	pod.Spec.Priority = nil // so that it may evict pods on the other node
	if got := w.postFilter(pod, drained); got != "n-0" {
		t.Errorf("while the victim is being deleted: %q", got)
	}
	w.now = w.now.Add(nominationTime + time.Second)
	if got := w.postFilter(pod, drained); got != "n-1 other-6" {
		t.Errorf("after some time: %q", got)
	}
}

// A pod that does not fit although others were evicted for it is not worth more evictions for some
// time.
func TestEvictionsThatDidNotHelpAreNotRepeatedAtOnce(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	pod := w.newPod("a", "new", "1", 0)
	if got := w.postFilter(pod, nil); got != "n-0 b-7" {
		t.Fatalf("got %q", got)
	}
	victim := w.cluster.Nodes()[0].Pod(7)
	w.plugin.forget(victim)
	victim.DeletionTimestamp = nil // another pod has its room
	unsuitable := rejections{"n-0": scheduler.Unschedulable("node(s) didn't match pod topology spread constraints")}
	if got := w.postFilter(pod, unsuitable); got != "" {
		t.Errorf("when the victim is gone: %q", got)
	}
	if got := w.postFilter(pod, nil); got != "" {
		t.Errorf("at the next attempt: %q", got)
	}
	w.now = w.now.Add(retryTime)
	if got := w.postFilter(pod, nil); !strings.HasPrefix(got, "n-0 b-") {
		t.Errorf("after some time: %q", got)
	}
}

func TestRoomThatOthersTookIsMadeAgain(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	pod := w.newPod("a", "new", "1", 0)
	for i, want := range []string{"n-0 b-7", "n-0 b-6", "n-0 b-5", ""} {
		if got := w.postFilter(pod, nil); got != want {
			t.Fatalf("round %d: got %q, want %q", i, got, want)
		}
		victim := w.cluster.Nodes()[0].Pod(7 - i)
		w.plugin.forget(victim)
		now := metav1.Now()
		victim.DeletionTimestamp = &now
		w.run("n-0", "other", fmt.Sprintf("taker-%d", i), 1, "1", 1000)
	}
}

// Pods that are being deleted make room too.
func TestNothingMoreIsEvictedThanWhatIsMissing(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 8, "1", 0)
	now := metav1.Now()
	leaving := w.cluster.Nodes()[0].Pod(0)
	leaving.DeletionTimestamp = &now
	pod := w.newPod("a", "new", "1", 0)
	for _, attempt := range []string{"first", "second"} {
		if got := w.postFilter(pod, nil); got != "n-0" {
			t.Errorf("%s attempt: %q", attempt, got)
		}
	}
	if got := w.postFilter(w.newPod("a", "other", "1", 0), nil); got != "n-0 b-7" {
		t.Errorf("another pod: %q", got)
	}
}

// The scheduler may retry a pod before the event that deletes another one has reached the plugin.
func TestPodIsNotRejectedBecauseOfPodsThatAreGone(t *testing.T) {
	for name, leave := range map[string]func(store cache.Store, pod *corev1.Pod) error{
		"deleted": func(store cache.Store, pod *corev1.Pod) error { return store.Delete(pod) },
		"finished": func(store cache.Store, pod *corev1.Pod) error {
			pod.Status.Phase = corev1.PodFailed
			return store.Update(pod)
		},
		"replaced": func(store cache.Store, pod *corev1.Pod) error {
			pod.UID, pod.Spec.NodeName = "other", ""
			return store.Update(pod)
		},
	} {
		w := newWorld(t, twoTeams, 2)
		w.run("n-0", "a", "a", 8, "1", 0)
		preFilter := func() string {
			_, status := w.plugin.PreFilter(context.Background(), plugintest.NewState(), w.newPod("a", "new", "1", 0))
			return status.String()
		}
		if got := preFilter(); got != "UnschedulableAndUnresolvable: quota a: no more than 8 of cpu" {
			t.Errorf("%s: before: %q", name, got)
		}
		object, _, err := w.store().GetByKey("a/a-3")
		if err != nil {
			t.Fatal(err)
		}
		if err := leave(w.store(), object.(*corev1.Pod).DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if got := preFilter(); got != "Success" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPodsBeyondMaxWaitOrEvictTheirOwnTeam(t *testing.T) {
	full := rejections{"n-0": scheduler.Unschedulable("quota a: no more than 8 of cpu"),
		"n-1": scheduler.Unschedulable("Insufficient cpu")}
	w := newWorld(t, twoTeams, 2)
	w.run("n-1", "a", "a", 8, "1", 5)
	if got := w.postFilter(w.newPod("a", "new", "1", 5),
		full); got != "UnschedulableAndUnresolvable: quota a: no more than 8 of cpu" {
		t.Errorf("of the same priority: %q", got)
	}
	if got := w.postFilter(w.newPod("a", "memory", "0", 5), nil); got != "" {
		t.Errorf("a pod without CPU: %q", got)
	}
	pod := w.newPod("a", "higher", "2", 6)
	state := plugintest.NewState()
	if _, status := w.plugin.PreFilter(context.Background(), state, pod); status != nil {
		t.Fatal(status)
	}
	if got := w.plugin.Filter(context.Background(), state, pod,
		w.cluster.Nodes()[0]); got.Code() != scheduler.CodeUnschedulable ||
		got.String() != "Unschedulable: quota a: no more than 8 of cpu" {
		t.Errorf("a node is rejected with %v", got)
	}
	// The node has room: pods of the team are evicted elsewhere.
	if got := w.postFilter(pod, full); got != "n-0 a-6 a-7" {
		t.Errorf("of higher priority: %q", got)
	}
}

func TestProtectedPodsFitIntoMin(t *testing.T) {
	w := newWorld(t, twoTeams, 2)
	w.run("n-0", "a", "a", 3, "1", 0, "pmk-sched.io/preemptible")
	w.run("n-1", "a", "x", 3, "1", 0)
	pod := w.newPod("a", "new", "1", 0)
	protect(pod)
	state := plugintest.NewState()
	if _, status := w.plugin.PreFilter(context.Background(), state, pod); status != nil {
		t.Errorf("one that fits: %v", status)
	}
	w.run("n-0", "a", "y", 1, "1", 0, "pmk-sched.io/preemptible")
	w.plugin.nominated.add(pod.UID, "n-0", amountsOf("1", "1Gi"), nil)
	if _, status := w.plugin.PreFilter(context.Background(), state, pod); status.Code() != scheduler.CodeUnresolvable {
		t.Errorf("one that does not fit: %v", status)
	}
	if kept := w.plugin.nominated.keptOn("n-0", ""); kept != nil {
		t.Errorf("%v is kept for one that does not fit", kept)
	}
}

// The scheduler's own preemption removes pods in a copy of the state and asks Filter.
func TestTheSchedulersOwnPreemptionFindsNoVictimsForTeams(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	ctx, node := context.Background(), w.cluster.Nodes()[0]
	for namespace, want := range map[string]scheduler.Code{"a": scheduler.CodeUnresolvable,
		"other": scheduler.CodeSuccess} {
		state, pod := plugintest.NewState(), w.newPod(namespace, "new", "1", 0)
		w.plugin.PreFilter(ctx, state, pod)
		tried := state.Clone()
		if status := w.plugin.RemovePod(ctx, tried, pod, w.newPod("b", "victim", "1", -1), node); status != nil {
			t.Error(status)
		}
		if got := w.plugin.Filter(ctx, tried, pod, node); got.Code() != want {
			t.Errorf("namespace %s: %v", namespace, got)
		}
		if got := w.plugin.Filter(ctx, state, pod, node); got != nil {
			t.Errorf("namespace %s, with all pods: %v", namespace, got)
		}
	}
}

func TestUsedIsWhatPodsWithANodeRequest(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	q := w.plugin.quotas.of("a")
	used := func(want int64) {
		t.Helper()
		if got := w.plugin.usage.used(q, nil)[corev1.ResourceCPU]; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	ctx, pod := context.Background(), w.newPod("a2", "pod", "2", 0)
	w.plugin.usage.observe(pod)
	used(0)
	w.plugin.Reserve(ctx, nil, pod, "n-0")
	used(2000)
	if got := w.plugin.usage.used(q, pod)[corev1.ResourceCPU]; got != 0 {
		t.Errorf("without the pod: %d", got)
	}
	w.plugin.Unreserve(ctx, nil, pod, "n-0")
	used(0)
	w.plugin.Reserve(ctx, nil, pod, "n-0")
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n-0"
	w.plugin.usage.observe(bound)
	w.plugin.Unreserve(ctx, nil, pod, "n-0") // it failed, but the API server has bound the pod
	used(2000)
	finished := bound.DeepCopy()
	finished.Status.Phase = corev1.PodSucceeded
	w.plugin.usage.observe(finished)
	used(0)
	w.plugin.usage.observe(bound)
	if got := w.plugin.usage.pod("a2", bound.UID); got != bound {
		t.Errorf("got pod %v", got)
	}
	if got := w.plugin.usage.pod("unknown", bound.UID); got != nil {
		t.Errorf("of an unknown namespace: %v", got)
	}
	w.plugin.forget(bound)
	used(0)
}

// The handlers of an informer may run later than the first cycle.
func TestPodsThatExistBeforeTheFirstOneCount(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	for i := range 8 {
		if err := w.store().Add(bind(w.newPod("a", fmt.Sprint("old-", i), "1", 0))); err != nil {
			t.Fatal(err)
		}
	}
	_, status := w.plugin.PreFilter(t.Context(), plugintest.NewState(), w.newPod("a", "new", "1", 0))
	if got := status.String(); got != "UnschedulableAndUnresolvable: quota a: no more than 8 of cpu" {
		t.Errorf("got %s", got)
	}
}

// The API server accepts requests whose sum is beyond an int64. A pod that names its node is not
// checked by a scheduler.
func TestSumsBeyondAnIntegerDoNotHideUsage(t *testing.T) {
	w := newWorld(t, "quotas: [{name: a, namespaces: [a], max: {memory: 8Gi}}]", 1)
	huge := func(name string) *corev1.Pod {
		pod := w.newPod("a", name, "1", 0)
		pod.Spec.NodeName = "nowhere"
		pod.Spec.Containers = []corev1.Container{pod.Spec.Containers[0], pod.Spec.Containers[0]}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources.Requests = plugintest.Requests("1", "6Ei")
		}
		return pod
	}
	q, next := w.plugin.quotas.of("a"), w.newPod("a", "next", "1", 0)
	check := func(step string, used int64, code scheduler.Code) {
		t.Helper()
		if got := w.plugin.usage.used(q, next)[corev1.ResourceMemory]; got != used {
			t.Errorf("%s: %d is used, want %d", step, got, used)
		}
		_, status := w.plugin.PreFilter(context.Background(), plugintest.NewState(), next)
		if status.Code() != code {
			t.Errorf("%s: %v", step, status)
		}
	}
	small := w.newPod("a", "small", "1", 0)
	small.Spec.NodeName = "n-0"
	for _, pod := range []*corev1.Pod{small, huge("a"), huge("b")} {
		if err := w.store().Add(pod); err != nil {
			t.Fatal(err)
		}
		w.plugin.usage.observe(pod)
	}
	check("two huge pods", math.MaxInt64, scheduler.CodeUnresolvable)
	if got := w.plugin.usage.used(q, huge("a"))[corev1.ResourceMemory]; got != math.MaxInt64 {
		t.Errorf("without one of them: %d", got)
	}
	w.plugin.forget(huge("a"))
	check("one huge pod", math.MaxInt64, scheduler.CodeUnresolvable)
	if got := w.plugin.usage.used(q, huge("b"))[corev1.ResourceMemory]; got != 1<<30 {
		t.Errorf("without the huge pod: %d", got)
	}
	w.plugin.forget(huge("b"))
	check("none", 1<<30, scheduler.CodeSuccess)
}

func TestPodLevelRequestsAndSidecarsCountInMax(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, change := range map[string]func(*corev1.Pod){
		"pod-level requests": func(pod *corev1.Pod) {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: plugintest.Requests("100", "1Gi")}
		},
		"sidecars": func(pod *corev1.Pod) {
			one := pod.Spec.Containers[0]
			one.RestartPolicy = &always
			for i := 0; i < 8; i++ {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, one)
			}
		},
	} {
		w := newWorld(t, twoTeams, 1)
		pod := w.newPod("a", "pod", "1", 0)
		change(pod)
		_, status := w.plugin.PreFilter(context.Background(), plugintest.NewState(), pod)
		if status.Code() != scheduler.CodeUnresolvable {
			t.Errorf("%s beyond max: %v", name, status)
		}
	}
}

// The scheduler writes the resources of claims to the status of a pod when it has chosen the node.
func TestResourcesOfClaimsCountFromReserveOn(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	first, second := w.newPod("a", "first", "1", 0), w.newPod("a", "second", "2", 0)
	fits := func(pod *corev1.Pod) bool {
		_, status := w.plugin.PreFilter(t.Context(), plugintest.NewState(), pod)
		return status.IsSuccess()
	}
	if !fits(first) || !fits(second) {
		t.Fatal("a pod does not fit into the empty quota")
	}
	first.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{
		{ResourceClaimName: "cores", Resources: plugintest.Requests("6", "1Gi")}}
	if status := w.plugin.Reserve(t.Context(), plugintest.NewState(), first, "n-0"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if fits(second) {
		t.Error("2 of 8 cores fit, although the first pod uses 7")
	}
	w.plugin.Unreserve(t.Context(), plugintest.NewState(), first, "n-0")
	if !fits(second) {
		t.Error("the pod does not fit after the first one was not bound")
	}
}

func TestElasticQuotasAreReadAndRetryPods(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	ctx := context.Background()
	set := func(namespace, name string, spec map[string]interface{}) {
		t.Helper()
		q, err := parse(elasticQuota(namespace, name, spec))
		if err != nil {
			t.Fatal(err)
		}
		w.plugin.setQuota(ctx, namespace, name, q)
	}
	limit := func(cpu string) map[string]interface{} {
		return map[string]interface{}{"max": map[string]interface{}{"cpu": cpu}}
	}
	set("c", "second", limit("3"))
	set("c", "first", limit("500m"))
	set("a", "shadowed", limit("1"))
	if diff := cmp.Diff([]string{"a", "b", "c/*"}, names(w.plugin.quotas)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if q := w.plugin.quotas.of("c"); q == nil || q.name != "c/*" || q.max[corev1.ResourceCPU] != 500 {
		t.Errorf("got %+v", q)
	}
	if q := w.plugin.quotas.of("a"); q.name != "a" {
		t.Errorf("the quota of the arguments does not count: %+v", q)
	}
	pod := w.newPod("c", "new", "1", 0)
	if err := w.store().Add(pod); err != nil {
		t.Fatal(err)
	}
	if got := w.postFilter(pod,
		nil); got != "UnschedulableAndUnresolvable: quota c/*: no more than 500m of cpu" {
		t.Errorf("got %q", got)
	}
	// A pod whose quota does not change is not retried, nor one that has a node by now or is gone.
	turnAway := func(other *corev1.Pod) {
		if err := w.store().Add(other); err != nil {
			t.Fatal(err)
		}
		if got := w.postFilter(other, nil); !strings.Contains(got, "no more than") {
			t.Errorf("%s: %q", other.Name, got)
		}
	}
	turnAway(w.newPod("a", "huge", "9", 0))
	for i := range 16 { // pods have no order
		other := w.newPod("c", fmt.Sprint("other-", i), "1", 0)
		if turnAway(other); i%2 == 0 {
			w.plugin.Reserve(ctx, plugintest.NewState(), other, "n-0")
			w.plugin.Unreserve(ctx, plugintest.NewState(), other, "n-0")
		} else {
			w.plugin.forget(other)
		}
	}
	w.plugin.setQuota(ctx, "a", "shadowed", nil)
	w.plugin.setQuota(ctx, "other", "any", nil)
	w.plugin.setQuota(ctx, "c", "first", nil)
	w.handle.AwaitActivated(t, "c/new")
	if q := w.plugin.quotas.of("c"); q == nil || q.name != "c/second" {
		t.Errorf("got %+v", q)
	}
	w.plugin.setQuota(ctx, "c", "second", nil)
	for _, amount := range []string{"many", "1e-999999999"} {
		spec := limit("3")
		spec["min"] = map[string]interface{}{"cpu": amount}
		if q, err := parse(elasticQuota("c", "second", spec)); q != nil || err == nil {
			t.Errorf("min of %s is accepted: %+v, %v", amount, q, err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(w.plugin.quotas)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if left := w.plugin.quotas.read; len(left) > 0 {
		t.Errorf("namespaces without ElasticQuotas: %v", left)
	}
}

func names(q *quotas) (names []string) {
	for _, one := range q.all() {
		names = append(names, one.name)
	}
	return names
}

func TestQuotasAreInTheOrderOfTheirNames(t *testing.T) {
	q := newQuotas(nil)
	want := []string{"a/q", "b/q", "c/q", "d/q", "e/q", "f/q"}
	for _, namespace := range []string{"d", "b", "f", "a", "e", "c"} {
		q.set(namespace, "q", &quota{name: namespace + "/q"})
	}
	if diff := cmp.Diff(want, names(q)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetricsShowWhatQuotasHaveAndUse(t *testing.T) {
	w := newWorld(t, `
quotas:
- {name: a, namespaces: [a], min: {cpu: 4, memory: 1Gi}, max: {cpu: 8}}
- {name: b, namespaces: [b], max: {cpu: 8500m}}
`, 1)
	registry := w.handle.Metrics()
	for i := 0; i < 2; i++ { // for each profile
		if _, err := newMetrics(registry, w.plugin.quotas, w.plugin.usage); err != nil {
			t.Fatal(err)
		}
	}
	w.run("n-0", "b", "b", 3, "500m", 0)
	families, err := w.handle.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := ""
			for _, pair := range m.GetLabel() {
				labels += " " + pair.GetValue()
			}
			got[family.GetName()+labels] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{}
	for what, amount := range map[string]float64{
		"min a cpu": 4, "max a cpu": 8, "used a cpu": 0, "min a memory": 1 << 30, "used a memory": 0,
		"min b cpu": 0, "max b cpu": 8.5, "used b cpu": 1.5,
	} {
		want["pmk_sched_elasticquota_amount "+what] = amount
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEvictionsThatAreRefusedDoNotWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/pods/protected/eviction") {
			w.Header().Set("Retry-After", "10")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w,
				`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
	}))
	t.Cleanup(server.Close)
	e, err := newEviction(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	free, protected := plugintest.NewPod("b", "free", nil), plugintest.NewPod("b", "protected", nil)
	if refused, err := e.tryAll(ctx, []*corev1.Pod{free, protected}); refused != protected || err != nil {
		t.Errorf("got %v, %v", refused, err)
	}
	if refused, err := e.tryAll(ctx, []*corev1.Pod{free}); refused != nil || err != nil {
		t.Errorf("got %v, %v", refused, err)
	}
	if err := e.evict(ctx, free); err != nil {
		t.Error(err)
	}
}
