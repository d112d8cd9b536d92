package arbiter

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// list returns a list of resources: names and amounts in turn.
func list(of ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		all[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return all
}

// podOf returns a pending pod with one container.
func podOf(name string, requests ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: list(requests...)}}}},
	}
}

func on(node string, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = node
	return pod
}

func withPort(pod *corev1.Pod, ip string, protocol corev1.Protocol, number int32) *corev1.Pod {
	c := &pod.Spec.Containers[0]
	c.Ports = append(c.Ports, corev1.ContainerPort{HostIP: ip, Protocol: protocol, HostPort: number})
	return pod
}

// ledgerOf returns a ledger with one node of 2 CPU, 4 Gi, 3 pods and one GPU, at a time that the
// test sets.
func ledgerOf(pods ...*corev1.Pod) (l *Ledger, now *time.Time) {
	l, now = NewLedger(), new(time.Unix(1000, 0))
	l.now = func() time.Time { return *now }
	l.SetNode("n", scheduler.NewAmounts(list("cpu", "2", "memory", "4Gi", "pods", "3", "example.com/gpu", "1",
		"example.com/none", "0")))
	for _, pod := range pods {
		l.SetPod(NewPod(pod))
	}
	return l, now
}

func admit(l *Ledger, pod *corev1.Pod, node string) (Decision, *Shortage) {
	return l.Admit(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID, node, false)
}

func TestWhatIsLeftOnANode(t *testing.T) {
	overhead := podOf("p", "cpu", "1")
	overhead.Spec.Overhead = list("cpu", "1500m")
	sidecar := podOf("p", "cpu", "1")
	always := corev1.ContainerRestartPolicyAlways
	sidecar.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always,
		Resources: corev1.ResourceRequirements{Requests: list("cpu", "1500m")}}}
	initial := podOf("p", "cpu", "1")
	initial.Spec.InitContainers = []corev1.Container{{Name: "init",
		Resources: corev1.ResourceRequirements{Requests: list("cpu", "1900m")}}}
	terminating := on("n", podOf("a", "cpu", "1500m"))
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	resized := on("n", podOf("a", "cpu", "500m"))
	resized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", AllocatedResources: list("cpu", "1500m"),
		Resources: &corev1.ResourceRequirements{Requests: list("cpu", "1500m")}}}
	critical := podOf("p", "cpu", "3")
	critical.Spec.Priority = new(int32(2_000_001_000))
	huge := on("n", podOf("a", "memory", "9Ei"))
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		pod  *corev1.Pod
		want Decision
		of   corev1.ResourceName
		left int64
	}{
		"an empty node": {pod: podOf("p", "cpu", "2", "memory", "4Gi", "example.com/gpu", "1"), want: Admitted},
		"too large":     {pod: podOf("p", "cpu", "2001m"), want: Refused, of: "cpu", left: 2000},
		"what fits exactly": {pods: []*corev1.Pod{on("n", podOf("a", "cpu", "1200m"))}, pod: podOf("p", "cpu", "800m"),
			want: Admitted},
		"a bound pod": {pods: []*corev1.Pod{on("n", podOf("a", "cpu", "1200m"))}, pod: podOf("p", "cpu", "801m"),
			want: Refused, of: "cpu", left: 800},
		"a pod on another node": {pods: []*corev1.Pod{on("m", podOf("a", "cpu", "1200m"))}, pod: podOf("p", "cpu", "2"),
			want: Admitted},
		"a pending pod": {pods: []*corev1.Pod{podOf("a", "cpu", "2")}, pod: podOf("p", "cpu", "2"), want: Admitted},
		"a terminating pod": {pods: []*corev1.Pod{terminating}, pod: podOf("p", "cpu", "1"), want: Refused, of: "cpu",
			left: 500},
		"a resized pod": {pods: []*corev1.Pod{resized}, pod: podOf("p", "cpu", "1"), want: Refused, of: "cpu",
			left: 500},
		"overhead":          {pod: overhead, want: Refused, of: "cpu", left: 2000},
		"a sidecar":         {pod: sidecar, want: Refused, of: "cpu", left: 2000},
		"an init container": {pod: initial, want: Admitted},
		"extended resources": {pods: []*corev1.Pod{on("n", podOf("a", "example.com/gpu", "1"))},
			pod: podOf("p", "example.com/gpu", "1"), want: Refused, of: "example.com/gpu"},
		"a resource of which the node has nothing": {pod: podOf("p", "example.com/none", "1"), want: Refused, of: "example.com/none"},
		"a resource that the node does not have":   {pod: podOf("p", "example.com/other", "1"), want: Admitted},
		"a resource that is overcommitted, unasked": {pods: []*corev1.Pod{on("n", podOf("a", "cpu", "3"))},
			pod: podOf("p", "memory", "1Gi"), want: Admitted},
		"the number of pods": {pods: []*corev1.Pod{on("n", podOf("a")), on("n", podOf("b")), on("n", podOf("c"))},
			pod: podOf("p"), want: Refused, of: "pods"},
		"a sum beyond an integer": {pods: []*corev1.Pod{huge, on("n", podOf("b", "memory", "9Ei"))},
			pod: podOf("p", "memory", "1"), want: Refused, of: "memory"},
		"a critical pod":  {pod: critical, want: Critical},
		"an unknown node": {pod: podOf("p", "cpu", "9"), want: UnknownNode},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := ledgerOf(append(c.pods, c.pod)...)
			node := "n"
			if c.want == UnknownNode {
				node = "other"
			}
			got, short := admit(l, c.pod, node)
			if got != c.want {
				t.Fatalf("got %s (%+v), expected %s", got, short, c.want)
			}
			if short != nil && (short.Resource != c.of || short.Left != c.left) {
				t.Errorf("got %+v, expected %s %d", short, c.of, c.left)
			}
		})
	}
}

func TestHostPortsConflictAsForNodePorts(t *testing.T) {
	taken := withPort(on("n", podOf("a")), "10.0.0.1", "", 80)
	for name, c := range map[string]struct {
		ip       string
		protocol corev1.Protocol
		number   int32
		want     Decision
	}{
		"the same address":  {"10.0.0.1", "TCP", 80, Refused},
		"every address":     {"", "TCP", 80, Refused},
		"another address":   {"10.0.0.2", "TCP", 80, Admitted},
		"another protocol":  {"10.0.0.1", "UDP", 80, Admitted},
		"another port":      {"10.0.0.1", "TCP", 81, Admitted},
		"no port of a node": {"10.0.0.1", "TCP", 0, Admitted},
	} {
		p := withPort(podOf("p"), c.ip, c.protocol, c.number)
		l, _ := ledgerOf(taken, p)
		if got, short := admit(l, p, "n"); got != c.want || short != nil && short.Resource != hostPort {
			t.Errorf("%s: %s, %+v", name, got, short)
		}
	}
}

// An init container has ended when the pod's containers run, unless it is a sidecar.
func TestHostPortsOfInitContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, c := range []struct {
		policy *corev1.ContainerRestartPolicy
		want   Decision
	}{{nil, Admitted}, {&always, Refused}} {
		taken := on("n", podOf("a"))
		taken.Spec.InitContainers = []corev1.Container{{Name: "init", RestartPolicy: c.policy,
			Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		p := withPort(podOf("p"), "", "TCP", 80)
		l, _ := ledgerOf(taken, p)
		if got, short := admit(l, p, "n"); got != c.want {
			t.Errorf("%v: %s, %+v", c.policy, got, short)
		}
	}
}

func TestAdmittedBindingsCountUntilTheyAreSeenOrExpire(t *testing.T) {
	first, second := podOf("a", "cpu", "1200m"), podOf("b", "cpu", "1200m")
	refused := func(l *Ledger) bool {
		got, _ := l.Admit(types.NamespacedName{Namespace: "default", Name: "b"}, "", "n", true)
		return got == Refused
	}
	for name, c := range map[string]struct {
		after func(l *Ledger, now *time.Time)
		want  bool
	}{
		"at once": {func(*Ledger, *time.Time) {}, true},
		"a status without the node": {func(l *Ledger, _ *time.Time) {
			l.SetPod(NewPod(first))
		}, true},
		"bound": {func(l *Ledger, now *time.Time) {
			l.SetPod(NewPod(on("n", first.DeepCopy())))
			*now = now.Add(time.Hour)
		}, true},
		"bound elsewhere": {func(l *Ledger, _ *time.Time) { l.SetPod(NewPod(on("m", first.DeepCopy()))) }, false},
		"admitted elsewhere later": {func(l *Ledger, _ *time.Time) {
			if got, _ := admit(l, first, "m"); got != UnknownNode {
				t.Error(got)
			}
		}, false},
		"deleted":        {func(l *Ledger, _ *time.Time) { l.DeletePod(first.UID) }, false},
		"after 29 s":     {func(_ *Ledger, now *time.Time) { *now = now.Add(29 * time.Second) }, true},
		"after 31 s":     {func(_ *Ledger, now *time.Time) { *now = now.Add(31 * time.Second) }, false},
		"the node again": {func(l *Ledger, _ *time.Time) { l.SetNode("n", scheduler.NewAmounts(list("cpu", "2"))) }, true},
		"a larger node":  {func(l *Ledger, _ *time.Time) { l.SetNode("n", scheduler.NewAmounts(list("cpu", "3"))) }, false},
		"no node":        {func(l *Ledger, _ *time.Time) { l.DeleteNode("n") }, false},
		"a pod of the same name": {func(l *Ledger, _ *time.Time) {
			other := first.DeepCopy()
			other.UID = "another"
			l.SetPod(NewPod(other))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := ledgerOf(first, second)
			if got, short := admit(l, first, "n"); got != Admitted {
				t.Fatalf("%s, %+v", got, short)
			}
			c.after(l, now)
			if got := refused(l); got != c.want {
				t.Errorf("refused: %t", got)
			}
		})
	}
}

func TestABindingThatIsRepeatedFits(t *testing.T) {
	p := podOf("a", "cpu", "2")
	l, _ := ledgerOf(p)
	for range 2 {
		if got, short := admit(l, p, "n"); got != Admitted {
			t.Errorf("%s, %+v", got, short)
		}
	}
}

func TestDryRunsTakeNoRoom(t *testing.T) {
	l, _ := ledgerOf(podOf("a", "cpu", "2"), podOf("b", "cpu", "2"))
	for _, name := range []string{"a", "b"} {
		if got, _ := l.Admit(types.NamespacedName{Namespace: "default", Name: name}, "", "n", true); got != Admitted {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPodsThatAreNotKnownOrBoundPass(t *testing.T) {
	bound := on("n", podOf("bound", "cpu", "9"))
	l, _ := ledgerOf(bound, podOf("a", "cpu", "9"))
	if got, _ := admit(l, bound, "n"); got != Bound {
		t.Errorf("bound: %s", got)
	}
	for _, pod := range []*corev1.Pod{podOf("unknown"), {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a",
		UID: "new"}}} {
		if got, _ := admit(l, pod, "n"); got != UnknownPod {
			t.Errorf("%s: %s", pod.UID, got)
		}
	}
}

func TestShortageNamesThePodThatWasAdmittedLast(t *testing.T) {
	a, b, c := podOf("a", "cpu", "500m"), podOf("b", "cpu", "600m"), podOf("c", "memory", "1Gi")
	p := podOf("p", "cpu", "1")
	l, now := ledgerOf(on("n", podOf("old", "cpu", "1m")), a, b, c, p)
	l.SetNode("n", scheduler.NewAmounts(list("cpu", "2", "memory", "4Gi")))
	for _, pod := range []*corev1.Pod{a, b, c} {
		*now = now.Add(time.Second)
		if got, short := admit(l, pod, "n"); got != Admitted {
			t.Fatal(got, short)
		}
	}
	_, short := admit(l, p, "n")
	if short == nil || short.Taker == nil || short.Taker.Name != "b" || short.Left != 899 {
		t.Fatalf("%+v", short)
	}
	bind := &binding{pod: types.NamespacedName{Namespace: "default", Name: "p"}, node: "n"}
	want := "node n has not enough cpu left for pod default/p: requested 1, left 899m; " +
		"the last pod that was bound there is default/b"
	if diff := cmp.Diff(want, refusal(bind, short)); diff != "" {
		t.Error(diff)
	}
	bind.pod.Namespace = "team"
	want = "node n has not enough cpu left for pod team/p: requested 1, left 899m; " +
		"the last pod that was bound there has the UID uid-b"
	if diff := cmp.Diff(want, refusal(bind, short)); diff != "" {
		t.Error(diff)
	}
}

// Schedulers bind at the same time while the informers report what happened before.
func TestConcurrentBindingsNeverExceedANode(t *testing.T) {
	const nodes, pods = 4, 200
	l := NewLedger()
	for n := range nodes {
		l.SetNode(fmt.Sprint("n", n), scheduler.NewAmounts(list("cpu", "10", "pods", "110")))
	}
	var all []*corev1.Pod
	for i := range pods {
		all = append(all, podOf(fmt.Sprint("p", i), "cpu", "700m"))
		l.SetPod(NewPod(all[i]))
	}
	var mu sync.Mutex
	used := map[string]int{}
	var group sync.WaitGroup
	for i, pod := range all {
		group.Go(func() {
			node := fmt.Sprint("n", i%nodes)
			if got, _ := admit(l, pod, node); got == Admitted {
				mu.Lock()
				used[node]++
				mu.Unlock()
				l.SetPod(NewPod(on(node, pod.DeepCopy())))
			}
			l.Counts()
		})
	}
	group.Wait()
	for n := range nodes {
		if got := used[fmt.Sprint("n", n)]; got != 14 {
			t.Errorf("n%d: %d pods of 700m on 10 CPU", n, got)
		}
	}
	if known, count, admitted := l.Counts(); known != nodes || count != pods || admitted != 0 {
		t.Errorf("%d nodes, %d pods, %d admitted", known, count, admitted)
	}
}

func TestNothingIsLeftOfDeletedObjects(t *testing.T) {
	a, b := podOf("a", "cpu", "1"), on("n", podOf("b"))
	l, now := ledgerOf(a, b)
	admit(l, a, "other")
	*now = now.Add(time.Hour)
	if _, _, admitted := l.Counts(); admitted != 0 {
		t.Errorf("%d admitted after an hour", admitted)
	}
	l.DeletePod(a.UID)
	l.DeletePod(b.UID)
	l.DeletePod("unknown")
	l.DeleteNode("n")
	if len(l.nodes)+len(l.pods)+len(l.uids) != 0 {
		t.Errorf("left: %v %v %v", l.nodes, l.pods, l.uids)
	}
}
