package coscheduling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// world is a scheduler with the plugin, a fake clock, and nodes whose only resource is CPU. It
// treats rejected pods as kube-scheduler does: they wait for an event that may help, and for their
// back-off.
type world struct {
	*Coscheduling
	t      *testing.T
	handle *handle
	random *rand.Rand
	clock  time.Time
	nodes  map[string]int64 // free CPU
	total  map[string]int64
	pods   map[types.UID]*simulated
	// old schedulers, before 1.23, do not retry pods when a pod gives up its node.
	old bool
	// refuses returns the error of a request to retry a pod. If it is nil, requests succeed.
	refuses func(*corev1.Pod) error
	// bound are the names of bound pods, in order.
	bound []string
}

// simulated is a pod in a world.
type simulated struct {
	*corev1.Pod
	cpu      int64
	node     string
	state    state
	attempts int
	failed   time.Time
	ends     time.Time // when a waiting pod that was rejected or allowed gives up its node, or is bound
	allowed  bool
	released bool // Unreserve was called, and the scheduler has not taken the pod off its node yet
}

type state int

const (
	queued state = iota // tried when its back-off is over
	unschedulable
	waiting
	placed
)

// handle is the scheduler.Handle of a world.
type handle struct {
	*plugintest.Handle
	w *world
}

func (h *handle) Nodes() scheduler.NodeLister { return h }

func (h *handle) Get(name string) (scheduler.NodeInfo, error) {
	return nil, fmt.Errorf("node %s is not needed", name)
}

func (h *handle) List() ([]scheduler.NodeInfo, error) {
	var all []scheduler.NodeInfo
	for _, name := range h.w.nodeNames() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name}}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(h.w.total[name],
				resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
		}
		var pods []*corev1.Pod
		for _, p := range h.w.pods {
			if p.node == name {
				pods = append(pods, p.Pod)
			}
		}
		all = append(all, plugintest.NewNode(node, pods...))
	}
	return all, nil
}

func (h *handle) GetWaitingPod(uid types.UID) scheduler.WaitingPod {
	if p := h.w.pods[uid]; p != nil && p.state == waiting && p.ends.IsZero() {
		return &waitingPod{p, h.w}
	}
	return nil
}

func (h *handle) Activate(_ context.Context, pod *corev1.Pod) error {
	if h.w.refuses != nil {
		return h.w.refuses(pod)
	}
	if p := h.w.pods[pod.UID]; p != nil && p.state == unschedulable {
		p.state = queued
	}
	return nil
}

// waitingPod ends waiting a little later, as the scheduler's goroutine for the pod does.
type waitingPod struct {
	p *simulated
	w *world
}

func (w *waitingPod) Pod() *corev1.Pod         { return w.p.Pod }
func (w *waitingPod) PendingPlugins() []string { return []string{Name} }
func (w *waitingPod) Allow(string)             { w.end(true) }
func (w *waitingPod) Reject(_, _ string)       { w.end(false) }
func (w *waitingPod) end(allowed bool) {
	if w.p.ends.IsZero() {
		w.p.ends, w.p.allowed = w.w.clock.Add(time.Duration(w.w.random.IntN(200))*time.Millisecond), allowed
	}
}

func newWorld(t *testing.T, args string, nodes ...int64) *world {
	t.Helper()
	s, err := decode(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, random: rand.New(rand.NewPCG(1, 2)), clock: time.Unix(1700000000, 0),
		nodes: map[string]int64{}, total: map[string]int64{}, pods: map[types.UID]*simulated{},
	}
	w.handle = &handle{&plugintest.Handle{}, w}
	m, err := newMetrics(w.handle.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	w.Coscheduling = newPlugin(s, m, w.handle, func() time.Time { return w.clock })
	w.Coscheduling.pods = &pods{
		name: s.index(), active: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			s.indexers()), succeeded: cache.NewIndexer(cache.MetaNamespaceKeyFunc, s.indexers()),
	}
	for i, cpu := range nodes {
		w.addNode(fmt.Sprintf("node-%d", i), cpu)
	}
	return w
}

func (w *world) nodeNames() []string {
	var names []string
	for name := range w.nodes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (w *world) addNode(name string, cpu int64) {
	w.nodes[name], w.total[name] = cpu, cpu
	w.event()
}

// event is one that may help every pod that was rejected.
func (w *world) event() {
	for _, p := range w.pods {
		if p.state == unschedulable {
			p.state = queued
		}
	}
}

// newPod returns a pod of a group; without a group if that is "".
func newPod(name, group string, size int, cpu int64) *corev1.Pod {
	pod := plugintest.NewPod("shop", name,
		corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)})
	if group != "" {
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": group, "pmk-sched.io/min-member": strconv.Itoa(size)}
	}
	return pod
}

// create creates a pod.
func (w *world) create(pod *corev1.Pod) {
	w.t.Helper()
	pod.CreationTimestamp = metav1.NewTime(w.clock)
	cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	w.pods[pod.UID] = &simulated{Pod: pod, cpu: cpu.Value()}
	w.index(w.pods[pod.UID])
}

// createGang creates the pods of a group, named GROUP-0 and so on.
func (w *world) createGang(group string, size int, cpu int64) {
	for i := range size {
		w.create(newPod(fmt.Sprintf("%s-%d", group, i), group, size, cpu))
	}
}

func (w *world) index(p *simulated) {
	w.t.Helper()
	if err := w.Coscheduling.pods.active.Add(p.Pod); err != nil {
		w.t.Fatal(err)
	}
}

// remove deletes the pods whose names begin with a prefix.
func (w *world) remove(prefix string) {
	w.t.Helper()
	for uid, p := range w.pods {
		if !strings.HasPrefix(p.Name, prefix) {
			continue
		}
		if err := w.Coscheduling.pods.active.Delete(p.Pod); err != nil {
			w.t.Fatal(err)
		}
		if p.state == waiting && !p.released { // as when the scheduler sees that the pod is deleted
			w.Unreserve(w.t.Context(), nil, p.Pod, p.node)
		}
		if p.node != "" {
			w.nodes[p.node] += p.cpu
		}
		delete(w.pods, uid)
	}
	w.event()
}

// run lets time pass, until done returns true if it is set, and fails the test if that takes
// longer.
func (w *world) run(most time.Duration, done func() bool) time.Duration {
	w.t.Helper()
	const step = 50 * time.Millisecond
	begun := w.clock
	for w.clock.Sub(begun) < most {
		if done != nil && done() {
			return w.clock.Sub(begun)
		}
		w.clock = w.clock.Add(step)
		w.reject(w.expire(w.t.Context()))
		w.retryPods(w.t.Context())
		w.endWaiting()
		w.scheduleReady()
		w.checkRoom()
	}
	if done != nil && !done() {
		w.t.Fatalf("not within %s:\n%s", most, w)
	}
	return most
}

// endWaiting binds allowed pods, and takes the node away from rejected pods.
func (w *world) endWaiting() {
	for _, p := range w.sorted() {
		if p.state != waiting || p.ends.IsZero() || w.clock.Before(p.ends) {
			continue
		}
		if p.allowed {
			w.bind(p)
			continue
		}
		if !p.released {
			w.Unreserve(w.t.Context(), nil, p.Pod, p.node)
			p.released, p.ends = true, w.clock.Add(200*time.Millisecond)
			continue
		}
		w.giveUp(p)
		if !w.old {
			w.event()
		}
	}
}

func (w *world) giveUp(p *simulated) {
	w.nodes[p.node] += p.cpu
	p.node, p.ends, p.released = "", time.Time{}, false
	w.fail(p)
}

func (w *world) fail(p *simulated) {
	p.state, p.failed = unschedulable, w.clock
}

func (w *world) bind(p *simulated) {
	bound := p.DeepCopy()
	bound.Spec.NodeName = p.node
	p.Pod, p.state = bound, placed
	w.bound = append(w.bound, p.Name)
	w.index(p)
}

// sorted returns the pods in a random order that the seed determines.
func (w *world) sorted() []*simulated {
	var all []*simulated
	for _, p := range w.pods {
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b *simulated) int {
		return int(scheduler.PodPriority(b.Pod) - scheduler.PodPriority(a.Pod))
	})
	return all
}

// scheduleReady runs a scheduling cycle for every pod in the queue whose back-off is over.
func (w *world) scheduleReady() {
	for _, p := range w.sorted() {
		backoff := min(10*time.Second, time.Second<<max(0, p.attempts-1))
		if p.state == queued && (p.attempts == 0 || w.clock.Sub(p.failed) >= backoff) {
			w.schedule(p)
		}
	}
}

// rejected is an annotation of pods that another plugin rejects on all nodes. The value is "for
// good" if no other pod is in the way.
const rejected = "rejected"

// rejections are the reasons for which the nodes reject a pod: for lack of room, or another plugin.
type rejections struct{ p *simulated }

func (r rejections) Status(string) *scheduler.Status {
	if r.p.Annotations[rejected] == "for good" {
		return scheduler.Unresolvable("node(s) had volume node affinity conflict")
	}
	return scheduler.Unschedulable("Insufficient cpu")
}

// schedule is a scheduling cycle.
func (w *world) schedule(p *simulated) {
	ctx, cycle := w.t.Context(), plugintest.NewState()
	p.attempts++
	_, status := w.PreFilter(ctx, cycle, p.Pod)
	node := ""
	for _, name := range w.nodeNames() {
		if status.IsSuccess() && w.nodes[name] >= p.cpu && p.Annotations[rejected] == "" {
			node = name
		}
	}
	if node == "" {
		if _, status := w.PostFilter(ctx, cycle, p.Pod, rejections{p}); status.Code() != scheduler.CodeUnschedulable {
			w.t.Errorf("PostFilter of %s: %v", p.Name, status)
		}
		w.fail(p)
		return
	}
	w.nodes[node] -= p.cpu
	p.node = node
	if status := w.Reserve(ctx, cycle, p.Pod, node); !status.IsSuccess() {
		w.t.Fatalf("Reserve of %s: %v", p.Name, status)
	}
	status, timeout := w.Permit(ctx, cycle, p.Pod, node)
	switch {
	case status.Code() == scheduler.CodeWait && timeout != w.gangs[w.settings.group(p.Pod)].deadline.Sub(w.clock)+slack:
		w.t.Fatalf("%s waits for %s, not until its group gives up", p.Name, timeout)
	case status.Code() == scheduler.CodeWait:
		p.state = waiting
	case status.IsSuccess():
		w.bind(p)
	default:
		w.Unreserve(ctx, cycle, p.Pod, node)
		w.giveUp(p)
	}
}

func (w *world) checkRoom() {
	w.t.Helper()
	for name, free := range w.nodes {
		if free < 0 || free > w.total[name] {
			w.t.Fatalf("%s has %d of %d free", name, free, w.total[name])
		}
	}
}

// countPods returns how many pods whose names begin with a prefix are in a state.
func (w *world) countPods(prefix string, s state) (n int) {
	for _, p := range w.pods {
		if strings.HasPrefix(p.Name, prefix) && p.state == s {
			n++
		}
	}
	return n
}

// attempts returns how many attempts had a result.
func (w *world) attempts(result string) (n float64) {
	w.t.Helper()
	families, err := w.handle.Registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == result {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// quiet reports whether no pod keeps a node without being bound.
func (w *world) quiet() bool { return w.countPods("", waiting) == 0 }

// String shows all pods.
func (w *world) String() string {
	var lines []string
	for _, p := range w.pods {
		lines = append(lines, fmt.Sprintf("%s: state %d, node %q, %d attempts", p.Name, p.state, p.node, p.attempts))
	}
	sort.Strings(lines)
	return fmt.Sprint(w.nodes, "\n", strings.Join(lines, "\n"))
}
