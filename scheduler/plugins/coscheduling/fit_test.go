package coscheduling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// nodeWith returns a node with CPUs and room for ten pods, after change.
func nodeWith(name, cpu string, change func(*corev1.Node), pods ...*corev1.Pod) scheduler.NodeInfo {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a", "disk": "3"}}}
	node.Status.Allocatable = plugintest.Requests(cpu, "8Gi")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
	if change != nil {
		change(node)
	}
	return plugintest.NewNode(node, pods...)
}

// Room that the taints, the labels and the sizes of nodes keep from a pod is none.
func TestRoomIsThatOfNodesThatCanRunThePods(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Value: "v", Effect: effect}} }
	}
	requires := func(expressions, fields []corev1.NodeSelectorRequirement) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{}, {MatchExpressions: expressions, MatchFields: fields}}}}}
	}
	type requirements = []corev1.NodeSelectorRequirement
	avoids := func(topology, app string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: topology,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) requirements {
		return requirements{{Key: key, Operator: operator, Values: values}}
	}
	cases := map[string]struct {
		change func(*corev1.Node)
		spec   corev1.PodSpec
		want   int // of four pods of 3 CPU, on a node of 8
	}{
		"any node":                {nil, corev1.PodSpec{}, 2},
		"a cordoned node":         {func(n *corev1.Node) { n.Spec.Unschedulable = true }, corev1.PodSpec{}, 0},
		"a taint":                 {taint("reserved", corev1.TaintEffectNoSchedule), corev1.PodSpec{}, 0},
		"a taint that evicts":     {taint("reserved", corev1.TaintEffectNoExecute), corev1.PodSpec{}, 0},
		"a taint that is avoided": {taint("reserved", corev1.TaintEffectPreferNoSchedule), corev1.PodSpec{}, 2},
		"a taint that is tolerated": {taint("reserved", corev1.TaintEffectNoSchedule), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "reserved", Value: "v"}}}, 2},
		"a taint with another value": {taint("reserved", corev1.TaintEffectNoSchedule), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "reserved", Value: "w"}}}, 0},
		"all taints are tolerated": {taint("reserved", corev1.TaintEffectNoExecute), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, 2},
		"another effect is tolerated": {taint("reserved", corev1.TaintEffectNoExecute), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}}, 0},
		"a selector":                  {nil, corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, 2},
		"a selector of another value": {nil, corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, 0},
		"affinity":                    {nil, corev1.PodSpec{Affinity: requires(requirement("zone", "In", "b", "a"), nil)}, 2},
		"affinity to another zone":    {nil, corev1.PodSpec{Affinity: requires(requirement("zone", "NotIn", "a"), nil)}, 0},
		"affinity to a number":        {nil, corev1.PodSpec{Affinity: requires(requirement("disk", "Gt", "3"), nil)}, 0},
		"affinity to a name": {nil, corev1.PodSpec{
			Affinity: requires(nil, requirement("metadata.name", "In", "n"))}, 2},
		"affinity to another name": {nil, corev1.PodSpec{
			Affinity: requires(nil, requirement("metadata.name", "In", "m"))}, 0},
		"an unknown operator": {nil, corev1.PodSpec{Affinity: requires(requirement("zone", "Like", "b"), nil)}, 2},
		"a port of the node": {nil, corev1.PodSpec{Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{HostPort: 80}}}}}, 1},
		"anti-affinity":                 {nil, corev1.PodSpec{Affinity: avoids(corev1.LabelHostname, "rank")}, 1},
		"anti-affinity to other pods":   {nil, corev1.PodSpec{Affinity: avoids(corev1.LabelHostname, "web")}, 2},
		"anti-affinity in another area": {nil, corev1.PodSpec{Affinity: avoids("rack", "rank")}, 2},
		"the second toleration": {taint("reserved", corev1.TaintEffectNoSchedule), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "other", Operator: corev1.TolerationOpExists},
				{Key: "reserved", Value: "v"}}}, 2},
		"a node without a number of pods": {func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourcePods) },
			corev1.PodSpec{}, 0},
		"few pods": {func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
		}, corev1.PodSpec{}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for range 4 {
				pod := plugintest.NewPod("shop", "p", plugintest.Requests("3", "1Gi"))
				request := pod.Spec.Containers[0].Resources
				pod.Labels = map[string]string{"app": "rank"}
				if pod.Spec = *tc.spec.DeepCopy(); len(pod.Spec.Containers) == 0 {
					pod.Spec.Containers = make([]corev1.Container, 1)
				}
				pod.Spec.Containers[0].Resources = request
				pods = append(pods, pod)
			}
			if got := placeable([]scheduler.NodeInfo{nodeWith("n", "8", tc.change)}, shapesOf(pods), nil); got != tc.want {
				t.Errorf("room for %d, want %d", got, tc.want)
			}
		})
	}
}

// A node whose pods request more than it has takes nothing from the room of other nodes.
func TestRoomOfAnOvercommittedNodeIsNone(t *testing.T) {
	large := plugintest.NewPod("shop", "large", plugintest.Requests("20", "1Gi"))
	other := plugintest.NewPod("shop", "other", plugintest.Requests("1", "1Gi"))
	onePod := func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") }
	full := nodeWith("full", "8", onePod, other, other, other)
	pod := plugintest.NewPod("shop", "p", plugintest.Requests("3", "1Gi"))
	shapes := shapesOf([]*corev1.Pod{pod, pod, pod})
	if got := placeable([]scheduler.NodeInfo{nodeWith("large", "8", nil, large), full, nodeWith("n", "8", nil)}, shapes,
		nil); got != 2 {
		t.Errorf("room for %d, want 2", got)
	}
	gone := func(p *corev1.Pod) bool { return p == other }
	if got := placeable([]scheduler.NodeInfo{full}, shapes, gone); got != 1 {
		t.Errorf("room for %d without the other pods, want 1", got)
	}
}

// A request of 0 of a resource needs none of it, and the other requests count.
func TestRoomForRequestsOfNothing(t *testing.T) {
	pod := plugintest.NewPod("shop", "p", plugintest.Requests("3", "1Gi"))
	for i := range 20 {
		name := corev1.ResourceName(fmt.Sprintf("example.com/device-%d", i))
		pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("0")
	}
	for range 5 {
		shapes := shapesOf([]*corev1.Pod{pod, pod, pod})
		if got := placeable([]scheduler.NodeInfo{nodeWith("n", "8", nil)}, shapes, nil); got != 2 {
			t.Fatalf("room for %d, want 2", got)
		}
	}
}

// A part of a group is worth nothing, so that it must not be enough: two of three pods of a shape
// do not make up for the third.
func TestRoomIsCountedForEachShape(t *testing.T) {
	low := plugintest.NewPod("shop", "low", plugintest.Requests("6", "1Gi"))
	nodes := []scheduler.NodeInfo{nodeWith("a", "4", nil), nodeWith("b", "8", nil, low), nodeWith("c", "3", nil)}
	small, large := plugintest.NewPod("shop", "s", plugintest.Requests("1", "1Gi")), plugintest.NewPod("shop", "l",
		plugintest.Requests("4", "1Gi"))
	group := []*corev1.Pod{small, large, large, large}
	if got := placeable(nodes, shapesOf(group), nil); got != 2 {
		t.Errorf("room for %d, want 2", got)
	}
	if got := placeable(nodes, shapesOf(group), func(p *corev1.Pod) bool { return p == low }); got != 4 {
		t.Errorf("room for %d without the other pod, want 4", got)
	}
}

// Pods that need different ports of a node can share it.
func TestPodsWithOtherPortsAreOfAnotherShape(t *testing.T) {
	var group []*corev1.Pod
	for _, port := range []int32{80, 81, 81} {
		pod := plugintest.NewPod("shop", "p", plugintest.Requests("1", "1Gi"))
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port}}
		group = append(group, pod)
	}
	if got := placeable([]scheduler.NodeInfo{nodeWith("n", "8", nil)}, shapesOf(group), nil); got != 2 {
		t.Errorf("room for %d, want 2", got)
	}
}

// Nodes that a group cannot use do not let it begin, with or without evictions.
func TestGroupsDoNotBeginForNodesThatTheyCannotUse(t *testing.T) {
	w := newWorld(t, "", 4, 8)
	w.createGang("rank", 2, 3)
	for _, p := range w.pods {
		p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "node-0"}
	}
	w.run(soon, nil)
	if n := w.attempts(resultUnplaced) + w.attempts(resultTimeout); n > 0 {
		t.Errorf("the group began %v times", n)
	}
	_, status := w.PreFilter(t.Context(), plugintest.NewState(), w.pods["shop/rank-0"].Pod)
	if want := "the nodes that can run its pods have room for 1, and it needs 2"; !strings.Contains(status.String(), want) {
		t.Errorf("got %s, want %s", status, want)
	}
	w.create(newPod("single", "", 0, 3))
	w.run(soon, func() bool { return w.countPods("single", placed) == 1 })
}

// Room that comes free on nodes that a group cannot use does not shorten its back-off.
func TestBackOffIsNotShortenedByRoomThatAGroupCannotUse(t *testing.T) {
	w := newWorld(t, `{"backoff": {"initial": "1m"}}`, 4, 4, 4)
	w.create(newPod("other", "", 0, 4))
	w.run(time.Second, func() bool { return w.countPods("other", placed) == 1 })
	node := w.pods["shop/other"].node
	w.createGang("rank", 1, 2)
	p := w.pods["shop/rank-0"]
	p.Annotations = map[string]string{rejected: "for good"}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{node}}}}}}}}
	w.run(soon, func() bool { return w.attempts(resultUnplaced) == 1 })
	w.remove("other")
	w.run(30*time.Second, nil)
	if n := w.attempts(resultUnplaced); n != 1 {
		t.Errorf("the group was tried %v times", n)
	}
	w.addNode("new", 4)
	w.run(soon, func() bool { return w.attempts(resultUnplaced) == 2 })
}
