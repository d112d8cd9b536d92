package numaaware

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

const gpu corev1.ResourceName = "example.com/gpu"

// world is a plugin with nodes that have topologies.
type world struct {
	t       *testing.T
	plugin  *NUMAAware
	handle  *plugintest.Handle
	cluster *plugintest.Cluster
	now     time.Time
	clock   sync.Mutex // of now
}

func newWorld(t *testing.T, args string, nodes int) *world {
	t.Helper()
	s, err := decode(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, handle: &plugintest.Handle{}, now: time.Unix(1000, 0)}
	w.plugin = newPlugin(context.Background(), s, w.handle, w.time)
	w.cluster = plugintest.NewCluster(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	return w
}

func (w *world) time() time.Time {
	w.clock.Lock()
	defer w.clock.Unlock()
	return w.now
}

func (w *world) advance(by time.Duration) {
	w.clock.Lock()
	defer w.clock.Unlock()
	w.now = w.now.Add(by)
}

func (w *world) show(topology *unstructured.Unstructured) {
	w.t.Helper()
	if err := w.plugin.topologies.Set(topology); err != nil {
		w.t.Fatal(err)
	}
}

// zones are the free amounts of the zones of a node, each of which has 8 cores, 16Gi and 4 GPUs.
func topologyOf(node, policy, scope string, zones ...string) *unstructured.Unstructured {
	var list []interface{}
	for i, free := range zones {
		var resources []interface{}
		names, all := []string{"cpu", "memory", string(gpu)}, []string{"8", "16Gi", "4"}
		for j, available := range strings.Fields(free) {
			if available != "-" {
				resources = append(resources,
					map[string]interface{}{"name": names[j], "capacity": all[j], "allocatable": all[j], "available": available})
			}
		}
		list = append(list, map[string]interface{}{"name": fmt.Sprint("node-", i), "type": "Node", "resources": resources})
	}
	list = append(list, map[string]interface{}{"name": "socket-0", "type": "Socket", "resources": []interface{}{
		map[string]interface{}{"name": "cpu", "capacity": "99", "allocatable": "99", "available": "99"},
	}})
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
		"metadata": map[string]interface{}{"name": node},
		"attributes": []interface{}{
			map[string]interface{}{"name": "topologyManagerPolicy", "value": policy},
			map[string]interface{}{"name": "topologyManagerScope", "value": scope},
		},
		"zones": list,
	}}
}

// container requests CPU and GPUs, with limits if it is guaranteed.
func container(cpu string, gpus int64, guaranteed bool) corev1.Container {
	requests := plugintest.Requests(cpu, "1Gi")
	if gpus > 0 {
		requests[gpu] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
	if guaranteed {
		c.Resources.Limits = requests
	}
	return c
}

func podOf(name string, containers ...corev1.Container) *corev1.Pod {
	pod := plugintest.NewPod("default", name, nil)
	pod.Spec.Containers = containers
	return pod
}

func TestNodesWithoutRoomInAZoneAreRejected(t *testing.T) {
	guaranteed := podOf("g", container("6", 0, true))
	twoContainers := podOf("two", container("4", 0, true), container("4", 0, true))
	withInit := podOf("init", container("2", 0, true))
	withInit.Spec.InitContainers = []corev1.Container{container("6", 0, true)}
	sidecar, always := container("2", 0, true), corev1.ContainerRestartPolicyAlways
	sidecar.RestartPolicy = &always
	sidecarFirst := podOf("sidecar", container("4", 0, true))
	sidecarFirst.Spec.InitContainers = []corev1.Container{sidecar, container("6", 0, true)}
	sidecarLast := podOf("sidecar", container("4", 0, true))
	sidecarLast.Spec.InitContainers = []corev1.Container{container("6", 0, true), sidecar}
	podLevel := podOf("whole", container("6", 3, true))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Limits: plugintest.Requests("6", "1Gi")}
	fraction := podOf("fraction", container("6500m", 0, true))
	mixed := podOf("mixed", container("6500m", 0, true), container("2", 0, true))
	fractionInit := podOf("init", container("2", 0, true))
	fractionInit.Spec.InitContainers = []corev1.Container{container("6500m", 0, true)}
	fractionSidecar := podOf("sidecar", container("6", 0, true))
	sharing := container("500m", 0, true)
	sharing.RestartPolicy = &always
	fractionSidecar.Spec.InitContainers = []corev1.Container{sharing}
	cases := map[string]struct {
		pod           *corev1.Pod
		policy, scope string
		zones         []string
		want          bool
	}{
		"a zone has room": {guaranteed, "single-numa-node", "container",
			[]string{"2 16Gi 4", "6 16Gi 4"}, true},
		"the sum has room, no zone": {guaranteed, "single-numa-node", "container",
			[]string{"4 16Gi 4", "4 16Gi 4"}, false},
		"memory is in another zone": {guaranteed, "single-numa-node", "container",
			[]string{"6 0 4", "2 16Gi 4"}, false},
		"the policy allows several zones": {guaranteed, "best-effort", "container", []string{"4 16Gi 4", "4 16Gi 4"},
			true},
		"containers in different zones": {twoContainers, "single-numa-node", "container",
			[]string{"4 16Gi 4", "4 16Gi 4"}, true},
		"containers in different zones, pod": {twoContainers, "single-numa-node", "pod",
			[]string{"4 16Gi 4", "4 16Gi 4"}, false},
		"containers share a zone": {twoContainers, "single-numa-node", "pod",
			[]string{"8 16Gi 4", "0 16Gi 4"}, true},
		"the second container has no room": {twoContainers, "single-numa-node", "container",
			[]string{"7 16Gi 4", "3 16Gi 4"}, false},
		"an init container needs more": {withInit, "single-numa-node", "container",
			[]string{"4 16Gi 4", "4 16Gi 4"}, false},
		"an init container gives its room back": {withInit, "single-numa-node", "container", []string{"6 16Gi 4"}, true},
		"a sidecar keeps its room": {sidecarLast, "single-numa-node", "container",
			[]string{"5 16Gi 4", "1 16Gi 4"}, false},
		"a sidecar before an init container keeps its room": {sidecarFirst, "single-numa-node", "container",
			[]string{"7 16Gi 4"}, false},
		"a sidecar after an init container":       {sidecarLast, "single-numa-node", "container", []string{"6 16Gi 4"}, true},
		"a sidecar in another zone":               {sidecarFirst, "single-numa-node", "container", []string{"2 16Gi 4", "6 16Gi 4"}, true},
		"a sidecar before an init container, pod": {sidecarFirst, "single-numa-node", "pod", []string{"7 16Gi 4"}, false},
		"a sidecar after an init container, pod":  {sidecarLast, "single-numa-node", "pod", []string{"6 16Gi 4"}, true},
		"pod-level resources are not aligned, devices are": {podLevel, "single-numa-node", "container",
			[]string{"1 16Gi 1", "1 16Gi 3"}, true},
		"pod-level resources, devices in two zones": {podLevel, "single-numa-node", "container",
			[]string{"8 16Gi 2", "8 16Gi 2"}, false},
		"not guaranteed, CPU only": {podOf("b", container("6", 0, false)), "single-numa-node", "container",
			[]string{"1 16Gi 4", "1 16Gi 4"}, true},
		"not guaranteed, devices in one zone": {podOf("b", container("6", 3, false)), "single-numa-node", "container",
			[]string{"1 16Gi 1", "1 16Gi 3"}, true},
		"not guaranteed, devices in two zones": {podOf("b", container("6", 3, false)), "single-numa-node", "container",
			[]string{"8 16Gi 2", "8 16Gi 2"}, false},
		"guaranteed, CPU far from the devices": {podOf("g", container("6", 3, true)), "single-numa-node", "container",
			[]string{"8 16Gi 0", "2 16Gi 4"}, false},
		"part of a CPU is not aligned": {fraction, "single-numa-node", "container",
			[]string{"2 16Gi 4", "2 16Gi 4"}, true},
		"part of a CPU is not aligned, pod": {fraction, "single-numa-node", "pod", []string{"2 16Gi 4", "2 16Gi 4"}, true},
		"part of a CPU, memory is aligned": {fraction, "single-numa-node", "container",
			[]string{"8 512Mi 4", "8 512Mi 4"}, false},
		"part of a CPU, devices are aligned": {podOf("g", container("1500m", 3, true)), "single-numa-node", "container",
			[]string{"8 16Gi 2", "8 16Gi 2"}, false},
		"whole CPUs next to part of a CPU":        {mixed, "single-numa-node", "container", []string{"1 16Gi 4", "1 16Gi 4"}, false},
		"whole CPUs next to part of a CPU, pod":   {mixed, "single-numa-node", "pod", []string{"2 16Gi 4", "1 16Gi 4"}, true},
		"an init container with part of a CPU":    {fractionInit, "single-numa-node", "container", []string{"2 16Gi 4"}, true},
		"an init container, part of a CPU, pod":   {fractionInit, "single-numa-node", "pod", []string{"2 16Gi 4"}, true},
		"a sidecar with part of a CPU keeps none": {fractionSidecar, "single-numa-node", "pod", []string{"6 16Gi 4"}, true},
		"no zone has the resource": {podOf("g", container("6", 3, true)), "single-numa-node", "container",
			[]string{"8 16Gi -", "2 16Gi -"}, true},
		"one zone has the resource, with no room": {podOf("g", container("6", 3, true)), "single-numa-node", "container",
			[]string{"8 16Gi -", "2 16Gi 4"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", 1)
			w.show(topologyOf("n-0", tc.policy, tc.scope, tc.zones...))
			cycle := w.cluster.Schedule(context.Background(), w.plugin, tc.pod)
			if got := cycle.Node != ""; got != tc.want || cycle.Status != nil {
				t.Errorf("accepted: %t, %v, %v", got, cycle.Rejected, cycle.Status)
			}
		})
	}
}

func TestNodesThatDoNotAlignAreAcceptedUnlessTheArgumentsSayOtherwise(t *testing.T) {
	guaranteed, burstable := podOf("g", container("6", 0, true)), podOf("b", container("6", 0, false))
	for args, want := range map[string][]string{"": {"n-0", "n-0"}, "unaligned: Reject": {"n-2", "n-0"}} {
		w := newWorld(t, args, 3) // n-0 has no topology
		w.show(topologyOf("n-1", "restricted", "pod", "4 16Gi 4", "4 16Gi 4"))
		w.show(topologyOf("n-2", "single-numa-node", "pod", "6 1Gi 0"))
		var got []string
		for _, pod := range []*corev1.Pod{guaranteed, burstable} {
			cycle := w.cluster.Schedule(context.Background(), w.plugin, pod)
			if args == "" {
				got = append(got, w.cluster.Nodes()[0].Node().Name)
				if len(cycle.Rejected) > 0 {
					t.Errorf("rejected %v", cycle.Rejected)
				}
				continue
			}
			got = append(got, cycle.Node)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

func TestZonesAreScoredByWhatIsFree(t *testing.T) {
	pod := podOf("g", container("2", 0, true))
	for strategy, want := range map[string][]scheduler.NodeScore{
		// Free after the pod: 6 of 8 cores and 15 of 16 GiB; 2 of 8 and 15 of 16; the pod does not fit
		// into one zone.
		"LeastAllocated": {{Name: "n-0", Score: 84}, {Name: "n-1", Score: 59}, {Name: "n-2", Score: 0},
			{Name: "n-3", Score: 0}},
		"MostAllocated": {{Name: "n-0", Score: 16}, {Name: "n-1", Score: 41}, {Name: "n-2", Score: 0},
			{Name: "n-3", Score: 0}},
	} {
		w := newWorld(t, "strategy: "+strategy, 4)
		w.show(topologyOf("n-0", "single-numa-node", "pod", "8 16Gi 4", "8 16Gi 4"))
		w.show(topologyOf("n-1", "single-numa-node", "pod", "1 16Gi 4", "4 16Gi 4"))
		w.show(topologyOf("n-2", "best-effort", "pod", "1 16Gi 4", "1 16Gi 4"))
		if diff := cmp.Diff(want, w.cluster.Schedule(context.Background(), w.plugin, pod).Scores); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
}

func TestAmountsThatTakeTooLongToReadAreRefused(t *testing.T) {
	_, err := readTopology(topologyOf("n-0", "single-numa-node", "pod", "1e-999999999"))
	if err == nil || !strings.Contains(err.Error(), "the exponent has more than 3 digits") {
		t.Errorf("got %v", err)
	}
}

func TestAmountsOfAnySizeAreScored(t *testing.T) {
	name := corev1.ResourceName("example.com/unit")
	for _, c := range []struct{ allocatable, available, want string }{
		{"8", "8", "87"}, {"0", "4", "30"}, {"1e17", "1e17", "99"}, {"9e18", "9e18", "99"},
		{"9e18", "45e17", "49"}, {"92e15", "46e15", "49"}, {"100", "9e18", "100"},
	} {
		w := newWorld(t, "", 1)
		w.show(&unstructured.Unstructured{Object: map[string]interface{}{
			"metadata": map[string]interface{}{"name": "n-0"}, "topologyPolicies": []interface{}{"SingleNUMANodePodLevel"},
			"zones": []interface{}{map[string]interface{}{"type": "Node", "resources": []interface{}{
				map[string]interface{}{"name": string(name), "capacity": "10", "allocatable": c.allocatable,
					"available": c.available}}}},
		}})
		one := corev1.Container{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{name: resource.MustParse("1")}}}
		got := w.cluster.Schedule(context.Background(), w.plugin, podOf("p", one)).Scores
		if len(got) != 1 || fmt.Sprint(got[0].Score) != c.want {
			t.Errorf("%s of %s are free: %v, want %s", c.available, c.allocatable, got, c.want)
		}
	}
}

// A topology is older than the pods that have just been placed: which zone they get is not known,
// so they count in each.
func TestPodsCountUntilTheTopologyShowsThem(t *testing.T) {
	w := newWorld(t, "settle: 1m", 1)
	ctx := context.Background()
	topology := topologyOf("n-0", "single-numa-node", "pod", "8 16Gi 4", "8 16Gi 4")
	w.show(topology)
	fits := func(want bool) {
		t.Helper()
		if got := w.cluster.Schedule(ctx, w.plugin, podOf("next", container("4", 0, true))).Node != ""; got != want {
			t.Errorf("the next pod fits: %t", got)
		}
	}
	place := func(name string) *corev1.Pod {
		t.Helper()
		pod := podOf(name, container("6", 0, true))
		cycle := w.cluster.Schedule(ctx, w.plugin, pod)
		w.plugin.Reserve(ctx, cycle.State, pod, "n-0")
		w.cluster.Place(pod, "n-0")
		return pod
	}
	start := func(pod *corev1.Pod) {
		now := metav1.NewTime(w.now)
		pod.Status.StartTime = &now
		w.plugin.observe(pod)
	}
	first := place("first")
	fits(false)
	w.show(topology) // before the kubelet has seen the pod
	fits(false)
	start(first)
	fits(false)
	w.show(topologyOf("n-0", "single-numa-node", "pod", "2 10Gi 4", "8 16Gi 4"))
	fits(true)

	second := place("second")
	fits(false)
	w.plugin.Unreserve(ctx, nil, second, "n-0")
	fits(true)
	third := place("third")
	start(third)
	w.advance(2 * time.Minute) // the topology did not change
	fits(true)
	fourth := place("fourth")
	fits(false)
	w.plugin.forget(fourth)
	fits(true)

	// The event that deletes a pod reaches the scheduler before the plugin.
	gone := podOf("gone", container("6", 0, true))
	w.plugin.Reserve(ctx, w.cluster.Schedule(ctx, w.plugin, gone).State, gone, "n-0")
	fits(true)
}

func TestRejectedPodsAreRetriedWhenATopologyChanges(t *testing.T) {
	w := newWorld(t, "", 1)
	w.show(topologyOf("n-0", "single-numa-node", "pod", "4 16Gi 4"))
	pod := podOf("big", container("6", 0, true))
	w.pending(pod)
	if cycle := w.cluster.Schedule(context.Background(), w.plugin, pod); cycle.Node != "" {
		t.Fatal("the pod fits")
	}
	w.show(topologyOf("n-0", "single-numa-node", "pod", "6 16Gi 4"))
	w.plugin.topologies.Delete("", "n-0")
	w.handle.AwaitActivated(t, "default/big")
	if w.plugin.topologyOf("n-0") != nil {
		t.Error("the topology was not removed")
	}
}

func TestPoliciesOfV1alpha1AreRead(t *testing.T) {
	for policy, want := range map[string]topology{
		"SingleNUMANodePodLevel": {single: true, pod: true}, "SingleNUMANodeContainerLevel": {single: true},
		"BestEffortPodLevel": {pod: true}, "None": {},
	} {
		got, err := parse(map[string]interface{}{"topologyPolicies": []interface{}{policy}})
		if err != nil || got.single != want.single || got.pod != want.pod {
			t.Errorf("%s: %+v, %v", policy, got, err)
		}
	}
	if _, err := parse(map[string]interface{}{"zones": "none"}); err == nil {
		t.Error("an invalid object was read")
	}
}

func TestArgumentsThatAreWrongAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"strategy: Balanced": `strategy: "Balanced" is neither`, "unaligned: Maybe": `unaligned: "Maybe" is neither`,
		"settle: soon": `settle: "soon" must be a duration`, "settle: 2h": "must be a duration", "zones: 2": "unknown field",
		"settle: 999ms": "must be a duration", "settle: 3601s": "must be a duration",
	} {
		if _, err := Rules(scheduler.NewArguments([]byte(args))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{"settle: 1s", "settle: 1h"} {
		if _, err := Rules(scheduler.NewArguments([]byte(args))); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	rules, err := Rules(scheduler.NewArguments(nil))
	if err != nil || len(rules) != 2 || rules[1].Resources[0] != "noderesourcetopologies" {
		t.Errorf("%+v, %v", rules, err)
	}
}

func TestPodsThatNeedNoZoneAreSignedAlike(t *testing.T) {
	w := newWorld(t, "", 1)
	if part, status := w.plugin.Sign(context.Background(), podOf("b", container("6", 0, false))); part != nil ||
		status != nil {
		t.Errorf("got %v, %v", part, status)
	}
	part, status := w.plugin.Sign(context.Background(), podOf("g", container("6", 0, true)))
	if want := []interface{}{[]initNeed(nil), []amounts{{"cpu": 6000, "memory": 1 << 30}}}; status != nil ||
		cmp.Diff(interface{}(want), part) != "" {
		t.Errorf("got %v, %v", part, status)
	}
}

func BenchmarkNUMAAware(b *testing.B) {
	s, err := decode(scheduler.NewArguments(nil))
	if err != nil {
		b.Fatal(err)
	}
	p := newPlugin(context.Background(), s, &plugintest.Handle{}, time.Now)
	for i := 0; i < 5000; i++ {
		name := fmt.Sprintf("n-%d", i)
		if err := p.topologies.Set(topologyOf(name, "single-numa-node", "container", "8 16Gi 4", "8 16Gi 4")); err != nil {
			b.Fatal(err)
		}
	}
	cluster := plugintest.NewCluster(5000, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	plugintest.Benchmark(context.Background(), b, cluster, p, podOf("g", container("6", 1, true)))
}
