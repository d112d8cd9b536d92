package gpupacking

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

const (
	milli = "example.com/gpu-milli"
	index = "example.com/gpu-index"
	args  = `{"resource": "example.com/gpu-milli", "devices": {"units": 1000}, "annotations": {"index": "example.com/gpu-index"}, ` +
		`"workload": [{"cpu": "1", "amount": 300}, {"cpu": "1", "amount": 1000}]}`
)

func newPlugin(t testing.TB, h *plugintest.Handle, text string) *GPUPacking {
	t.Helper()
	g, err := New(t.Context(), scheduler.NewArguments([]byte(text)), h)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// gpuPod requests thousandths of a device. If devices is not empty, it is the annotation of the
// pod.
func gpuPod(name string, gpu int64, devices string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if gpu > 0 {
		requests[milli] = *resource.NewQuantity(gpu, resource.DecimalSI)
	}
	pod := plugintest.NewPod("shop", name, requests)
	if devices != "" {
		pod.Annotations = map[string]string{index: devices}
	}
	return pod
}

func gpuNode(name string, devices int64, pods ...*corev1.Pod) *plugintest.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"),
		corev1.ResourcePods: resource.MustParse("110")}
	if devices > 0 {
		n.Status.Allocatable[milli] = *resource.NewQuantity(1000*devices, resource.DecimalSI)
	}
	return plugintest.NewNode(n, pods...)
}

func TestFilterLooksAtEachDevice(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	fragmented := gpuNode("n", 2, gpuPod("a", 600, "0"), gpuPod("b", 600, "1"))
	for _, tt := range []struct {
		name string
		gpu  int64
		node *plugintest.Node
		want string
	}{
		{"no GPU requested", 0, gpuNode("n", 0), "Success"},
		{"fits on a device", 400, fragmented, "Success"},
		{"is free in total only", 500, fragmented, "Unschedulable: no GPU has enough free"},
		{"a whole device", 1000, fragmented, "Unschedulable: no GPU has enough free"},
		{"three devices", 3000, fragmented, "UnschedulableAndUnresolvable: node has too few GPUs"},
		{"one and a half", 1500, gpuNode("n", 2),
			"UnschedulableAndUnresolvable: request is neither a part of one GPU nor a number of whole GPUs"},
		{"no devices", 100, gpuNode("n", 0), "UnschedulableAndUnresolvable: node has no GPUs to share"},
		{"two devices", 2000, gpuNode("n", 3, gpuPod("a", 1, "1")), "Success"},
		{"pods without an annotation have devices too", 500, gpuNode("n", 2, gpuPod("a", 600, ""), gpuPod("b", 600, "")),
			"Unschedulable: no GPU has enough free"},
		{"they are on one device if they fit", 1000, gpuNode("n", 2, gpuPod("a", 600, ""), gpuPod("b", 400, "")), "Success"},
		{"an annotation that cannot be right is not used", 1000,
			gpuNode("n", 2, gpuPod("a", 600, "7"), gpuPod("b", 400, "x")), "Success"},
		{"an annotation that has a device twice is not used", 1000, gpuNode("n", 2, gpuPod("a", 2000, "0,0")),
			"Unschedulable: no GPU has enough free"},
		{"more than there is", 100, gpuNode("n", 1, gpuPod("a", 800, ""), gpuPod("b", 800, "")),
			"Unschedulable: no GPU has enough free"},
	} {
		pod, state := gpuPod("new", tt.gpu, ""), plugintest.NewState()
		if _, status := g.PreFilter(t.Context(), state, pod); status.Code() == scheduler.CodeSkip != (tt.gpu == 0) {
			t.Errorf("%s: PreFilter: %s", tt.name, status)
		}
		if got := g.Filter(t.Context(), state, pod, tt.node).String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// On a device that is in use already the pod takes nothing from pods that need a whole one; a free
// device would lose 0.5 × 800 to these.
func TestScorePrefersTheNodeWhoseFragmentGrowsLeast(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	nodes := []*plugintest.Node{gpuNode("free", 1), gpuNode("used", 1, gpuPod("a", 300, "0")), gpuNode("none", 0)}
	pod, state := gpuPod("new", 200, ""), plugintest.NewState()
	var scores []scheduler.NodeScore
	for _, n := range nodes[:2] {
		raw, status := g.Score(t.Context(), state, pod, n)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		scores = append(scores, scheduler.NodeScore{Name: n.Node().Name, Score: raw})
	}
	if want := []scheduler.NodeScore{{Name: "free", Score: -5}, {Name: "used", Score: 1}}; cmp.Diff(want, scores) != "" {
		t.Errorf("raw scores %v, want %v", scores, want)
	}
	if status := g.NormalizeScore(t.Context(), state, pod, scores); !status.IsSuccess() || scores[0].Score != 0 ||
		scores[1].Score != 100 {
		t.Errorf("scores %v, %v", scores, status)
	}
	if raw, _ := g.Score(t.Context(), plugintest.NewState(), gpuPod("cpu", 0, ""), nodes[2]); raw != noDevices {
		t.Errorf("a node without GPUs: %d", raw)
	}
}

// The nodes are named in the order of raw, from b on.
func TestOneOfTheBestNodesHasTheHighestScore(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	for _, tt := range []struct {
		name      string
		gpu       int64
		raw, want []int64
	}{
		{"the only best one", 200, []int64{-60, 11, 12, -24}, []int64{0, 88, 100, 45}},
		{"the first by name", 200, []int64{-60, 12, 12, 12}, []int64{0, 100, 90, 90}},
		{"all are equal", 200, []int64{-3, -3}, []int64{100, 90}},
		{"a single node", 200, []int64{-3}, []int64{100}},
		{"nodes without GPUs, for a pod without GPUs", 0, []int64{-8, 1, 0, 1}, []int64{0, 100, 80, 100}},
		{"nodes with GPUs only, for a pod without GPUs", 0, []int64{-8, 0, -4, 0}, []int64{0, 100, 45, 90}},
		{"no nodes", 200, nil, nil},
	} {
		pod, state := gpuPod("new", tt.gpu, ""), plugintest.NewState()
		g.PreFilter(t.Context(), state, pod)
		var scores []scheduler.NodeScore
		for i, s := range tt.raw {
			scores = append(scores, scheduler.NodeScore{Name: string(rune('b' + i)), Score: s})
		}
		slices.Reverse(scores) // the order of the list does not count
		if status := g.NormalizeScore(t.Context(), state, pod, scores); !status.IsSuccess() {
			t.Fatal(status)
		}
		slices.Reverse(scores)
		var got []int64
		for _, s := range scores {
			got = append(got, s.Score)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

// serve returns a handle whose API server accepts patches, and the annotations of the last one.
func serve(t *testing.T, status int) (*plugintest.Handle, map[string]string) {
	t.Helper()
	last := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var patch struct {
			Metadata struct {
				UID         string
				Annotations map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			t.Error(err)
		}
		for key, value := range patch.Metadata.Annotations {
			last[key] = value
		}
		last["uid"], last["request"] = patch.Metadata.UID, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1"}`)
	}))
	t.Cleanup(server.Close)
	return &plugintest.Handle{Config: &rest.Config{Host: server.URL}}, last
}

func TestPodIsAnnotatedWithItsDevices(t *testing.T) {
	h, last := serve(t, http.StatusOK)
	h.NodeList = []scheduler.NodeInfo{gpuNode("n", 3, gpuPod("a", 300, "1"))}
	g := newPlugin(t, h, strings.Replace(args, `"index": "example.com/gpu-index"`,
		`"index": "example.com/gpu-index", "time": "example.com/at", "set": {"example.com/assigned": "false"}`, 1))
	g.now = func() time.Time { return time.Unix(1700000000, 5) }
	for _, tt := range []struct {
		gpu  int64
		want string
	}{{200, "1"}, {2000, "0,2"}} {
		pod := gpuPod(fmt.Sprintf("p-%d", tt.gpu), tt.gpu, "")
		if status := g.Reserve(t.Context(), nil, pod, "n"); !status.IsSuccess() {
			t.Fatal(status)
		}
		if status := g.PreBind(t.Context(), nil, pod, "n"); !status.IsSuccess() {
			t.Fatal(status)
		}
		want := map[string]string{
			index: tt.want, "example.com/at": "1700000000000000005", "example.com/assigned": "false", "uid": string(pod.UID),
			"request": "PATCH /api/v1/namespaces/shop/pods/" + pod.Name + " application/merge-patch+json",
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPodIsNotBoundIfItCannotBeAnnotated(t *testing.T) {
	h, _ := serve(t, http.StatusForbidden)
	h.NodeList = []scheduler.NodeInfo{gpuNode("n", 1)}
	g := newPlugin(t, h, args)
	pod := gpuPod("p", 200, "")
	if status := g.PreBind(t.Context(), nil, pod, "n"); status.Code() != scheduler.CodeError ||
		!strings.Contains(status.String(), "are not reserved") {
		t.Errorf("not reserved: %s", status)
	}
	if status := g.Reserve(t.Context(), nil, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := g.PreBind(t.Context(), nil, pod, "n"); status.Code() != scheduler.CodeError ||
		!strings.Contains(status.String(), "annotate pod shop/p with its GPUs") {
		t.Errorf("forbidden: %s", status)
	}
	if status := g.PreBind(t.Context(), nil, gpuPod("cpu", 0, ""), "n"); !status.IsSuccess() {
		t.Errorf("without GPUs: %s", status)
	}
}

// Until the scheduler sees the annotation, the devices of an assumed pod are known from Reserve.
// They also take precedence over an annotation that an earlier attempt left.
func TestReservedDevicesCountBeforeTheAnnotationIsSeen(t *testing.T) {
	h := &plugintest.Handle{NodeList: []scheduler.NodeInfo{gpuNode("n", 2, gpuPod("used", 500, "1"))}}
	g := newPlugin(t, h, args)
	pod := gpuPod("p", 400, "0")
	if status := g.Reserve(t.Context(), nil, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	after := gpuNode("n", 2, gpuPod("used", 500, "1"), pod)
	free := func() []int64 {
		r, ok := g.roomOf(after, "")
		if !ok {
			t.Fatal("the node has no devices")
		}
		return r.free
	}
	if diff := cmp.Diff([]int64{1000, 100}, free()); diff != "" {
		t.Errorf("after Reserve: %v", free())
	}
	g.Unreserve(t.Context(), nil, pod, "n")
	if diff := cmp.Diff([]int64{600, 500}, free()); diff != "" {
		t.Errorf("after Unreserve: %v", free())
	}
	g.assumed.Assume(scheduler.AssumedPod{UID: pod.UID, Node: "n", Value: reservation{400, []int{1}}})
	g.forget(pod)
	if _, known := g.reservationOf(pod.UID); known {
		t.Error("a deleted pod is not forgotten")
	}
}

// An extender calls Reserve for pods that others have bound: they keep the devices in their
// annotation.
func TestReserveLeavesBoundPodsOnTheirDevices(t *testing.T) {
	pod := gpuPod("p", 400, "1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	n := gpuNode("n", 2, pod)
	g := newPlugin(t, &plugintest.Handle{NodeList: []scheduler.NodeInfo{n}}, args)
	if status := g.Reserve(t.Context(), nil, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if r, _ := g.roomOf(n, ""); cmp.Diff([]int64{1000, 600}, r.free) != "" {
		t.Errorf("free: %v", r.free)
	}
}

// With gpushare a device has as many units as the resource of the node by the number of devices.
func TestDevicesAreCountedByAResource(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		"aliyun.com/gpu-mem": resource.MustParse("32"), "aliyun.com/gpu-count": resource.MustParse("2")}
	pod := plugintest.NewPod("shop", "a", corev1.ResourceList{"aliyun.com/gpu-mem": resource.MustParse("6")})
	pod.Annotations = map[string]string{"ALIYUN_COM_GPU_MEM_IDX": "1"}
	g := newPlugin(t, &plugintest.Handle{}, "")
	r, ok := g.roomOf(plugintest.NewNode(n, pod), "")
	if !ok || r.whole != 16 || cmp.Diff([]int64{16, 10}, r.free) != "" {
		t.Errorf("room %+v, %v", r, ok)
	}
	for _, lacking := range []corev1.ResourceName{"aliyun.com/gpu-count", "aliyun.com/gpu-mem"} {
		without := n.DeepCopy()
		delete(without.Status.Allocatable, lacking)
		if _, ok := g.roomOf(plugintest.NewNode(without), ""); ok {
			t.Errorf("a node without %s has devices", lacking)
		}
	}
}

// The status of a node is written by its kubelet.
func TestNodeWithTooManyDevicesHasNone(t *testing.T) {
	const unitsOf = `{"resource": "aliyun.com/gpu-mem", "annotations": {"index": "example.com/index"}, "devices": {"units": `
	for _, c := range []struct {
		args       string
		mem, count int64
		devices    int
	}{
		{"", 1 << 10, 256, 256}, {"", 1 << 10, 257, 0}, {"", 1 << 60, 1 << 60, 0}, {"", math.MaxInt64, 256, 256},
		{unitsOf + `100}}`, 25600, 1, 256}, {unitsOf + `100}}`, 1e15, 1, 0}, {unitsOf + `1}}`, math.MaxInt64, 1, 0},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		n.Status.Allocatable = corev1.ResourceList{"aliyun.com/gpu-mem": *resource.NewQuantity(c.mem, resource.DecimalSI),
			"aliyun.com/gpu-count": *resource.NewQuantity(c.count, resource.DecimalSI)}
		h := &plugintest.Handle{}
		g := newPlugin(t, h, c.args)
		for range 2 {
			if r, ok := g.roomOf(plugintest.NewNode(n), ""); ok != (c.devices > 0) || len(r.free) != c.devices {
				t.Errorf("%+v: %d devices, %t", c, len(r.free), ok)
			}
		}
		if lines := h.Lines(); (len(lines) == 1) != (c.devices == 0) {
			t.Errorf("%+v: %q", c, lines)
		}
	}
}

// The annotations of all pods on a node are read for each pod that is placed, and a user may write
// as much as an object can have.
func TestAnnotationsThatTakeTooLongToReadAreIgnored(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	pod := gpuPod("long", 200, strings.Repeat("0,", 100_000)+"0")
	if n := testing.AllocsPerRun(10, func() {
		if devices := g.annotatedDevices(pod); devices != nil {
			t.Errorf("%d devices", len(devices))
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if got := g.annotatedDevices(gpuPod("short", 200, "255, 0")); !slices.Equal(got, []int{255, 0}) {
		t.Errorf("got %v", got)
	}
}

// Pods in random order on several nodes: no device ever has more than it can hold, and the plugin
// places each pod that it accepts.
func TestDevicesAreNeverOvercommitted(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := &plugintest.Handle{}
		g := newPlugin(t, h, args)
		placed := map[string][]*corev1.Pod{"a": nil, "b": nil, "c": nil}
		for i := range 60 {
			pod := gpuPod(fmt.Sprintf("p-%d", i), []int64{100, 300, 460, 700, 1000, 2000}[random.IntN(6)], "")
			h.NodeList = nil
			var feasible []string
			for _, name := range []string{"a", "b", "c"} {
				n := gpuNode(name, 4, placed[name]...)
				h.NodeList = append(h.NodeList, n)
				if g.Filter(t.Context(), plugintest.NewState(), pod, n).IsSuccess() {
					feasible = append(feasible, name)
				}
			}
			if len(feasible) == 0 {
				continue
			}
			name := feasible[random.IntN(len(feasible))]
			if status := g.Reserve(t.Context(), nil, pod, name); !status.IsSuccess() {
				t.Fatalf("seed %d: %s passed Filter and not Reserve: %s", seed, pod.Name, status)
			}
			placed[name] = append(placed[name], pod)
		}
		for name, pods := range placed {
			used := make([]int64, 4)
			for _, pod := range pods {
				reserved, _ := g.reservationOf(pod.UID)
				devices := reserved.devices
				each, needed := node().part(demandOf(pod, milli).gpu)
				if len(devices) != needed || len(slices.Compact(slices.Clone(devices))) != needed {
					t.Fatalf("seed %d: devices %v", seed, devices)
				}
				for _, d := range devices {
					used[d] += each
				}
			}
			if slices.Max(used) > 1000 {
				t.Errorf("seed %d: node %s: %v", seed, name, used)
			}
		}
	}
}

func TestWorkloadIsMeasuredFromPodsWithGPUs(t *testing.T) {
	done := gpuPod("done", 1000, "")
	done.Status.Phase = corev1.PodSucceeded
	pods := []*corev1.Pod{gpuPod("a", 460, ""), gpuPod("b", 460, ""), gpuPod("c", 1000, ""), gpuPod("cpu", 0, ""),
		gpuPod("d", 460, ""), done}
	want := workload{{demand: demand{1000, 460}, share: 0.75}, {demand: demand{1000, 1000}, share: 0.25}}
	got := measure(pods, &settings{resource: milli})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("workload %v, want %v", got, want)
	}
	var many []*corev1.Pod
	for i := range 40 {
		many = append(many, gpuPod(fmt.Sprint(i), int64(i+1), ""))
	}
	if n := len(measure(append(many, pods...), &settings{resource: milli})); n != maxClasses {
		t.Errorf("%d classes", n)
	}
	if got := measure(nil, &settings{resource: milli}); got != nil {
		t.Errorf("no pods: %v", got)
	}
}

// Pods with the same demand are one class, whatever models they require.
func TestWorkloadHasThePartsOfPodsThatRequireModels(t *testing.T) {
	const label = "example.com/model"
	in := func(values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
			{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values},
		}}
	}
	not := in("T4")
	not.MatchExpressions[1].Operator = corev1.NodeSelectorOpNotIn
	selector := gpuPod("selector", 460, "")
	selector.Spec.NodeSelector = map[string]string{label: "T4"}
	pods := []*corev1.Pod{gpuPod("any", 460, ""), selector, gpuPod("whole", 1000, "")}
	for name, terms := range map[string][]corev1.NodeSelectorTerm{
		"one":   {in("T4", "P100")},
		"terms": {in("P100"), in("P100"), in("G2")},
		"not":   {not},
		"zone":  {in("T4"), {MatchExpressions: in("T4").MatchExpressions[:1]}},
	} {
		pod := gpuPod(name, 460, "")
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
		pods = append(pods, pod)
	}
	want := workload{
		{demand: demand{1000, 460}, share: 6.0 / 7, choosy: 3.0 / 6, models: map[string]float64{
			"T4": 2.0 / 6, "P100": 2.0 / 6, "G2": 1.0 / 6,
		}},
		{demand: demand{1000, 1000}, share: 1.0 / 7},
	}
	got := measure(pods, &settings{resource: milli, modelLabel: label})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("workload %v, want %v", got, want)
	}
	for model, part := range map[string]float64{"": 0.5, "T4": 5.0 / 6, "G2": 4.0 / 6, "A10": 0.5} {
		if accepts := got[0].accepts(model); math.Abs(accepts-part) > 1e-9 || got[1].accepts(model) != 1 {
			t.Errorf("%q: %v of the first class accept it, want %v; %v of the second", model, accepts, part, got[1].accepts(model))
		}
	}
	if got := measure(pods, &settings{resource: milli}); got[0].choosy != 0 {
		t.Errorf("without the label: %v", got)
	}
}

// A pod that may have any model leaves the devices of the model that others require.
func TestScorePrefersNodesWhoseModelFewPodsRequire(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, `{"resource": "`+milli+`", "devices": {"units": 1000}, `+
		`"annotations": {"index": "`+index+`"}, "modelLabel": "example.com/model", `+
		`"workload": [{"amount": 500}, {"amount": 500, "models": ["T4"]}, {"amount": 500, "models": ["G2", "T4"]}]}`)
	score := func(model string) int64 {
		node := gpuNode("n", 2)
		node.Node().Labels = map[string]string{"example.com/model": model}
		score, status := g.Score(t.Context(), plugintest.NewState(), gpuPod("p", 1000, ""), node)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		return score
	}
	// Of the device that the pod takes, none, a third and two thirds of the workload had no use.
	if diff := cmp.Diff([]int64{0, 4, 8}, []int64{score("T4"), score("G2"), score("P100")}); diff != "" {
		t.Errorf("scores on T4, G2 and P100 (-want +got):\n%s", diff)
	}
}

func TestDemandIsTheLargerOfInitAndOtherContainers(t *testing.T) {
	pod := gpuPod("p", 300, "")
	pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
	pod.Spec.InitContainers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5"), milli: resource.MustParse("500")}}}}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	if got := demandOf(pod, milli); got != (demand{5250, 600}) {
		t.Errorf("demand %+v", got)
	}
}

// The demands of all pods on a node are needed for each pod that is placed.
func TestDemandOfAPodWithManyContainersIsComputedOnce(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	pod := gpuPod("many", 200, "")
	for range fewContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{})
	}
	request := func(version, gpu string) {
		pod.ResourceVersion = version
		pod.Spec.Containers[0].Resources.Requests[milli] = resource.MustParse(gpu)
	}
	for _, c := range []struct {
		version, gpu string
		want         int64
	}{{"1", "200", 200}, {"1", "300", 200}, {"2", "300", 300}} {
		request(c.version, c.gpu)
		if got := g.demandOn(pod).gpu; got != c.want {
			t.Errorf("version %s, request %s: got %d, want %d", c.version, c.gpu, got, c.want)
		}
	}
	g.forgetGone(pod)
	if request("2", "400"); g.demandOn(pod).gpu != 400 {
		t.Error("a pod that is gone is kept")
	}
}

func TestPodsAreSignedByWhatTheyRequest(t *testing.T) {
	g := newPlugin(t, &plugintest.Handle{}, args)
	sign := func(pod *corev1.Pod) string {
		part, status := g.Sign(t.Context(), pod)
		text, err := json.Marshal(part)
		if err != nil || !status.IsSuccess() {
			t.Fatal(err, status)
		}
		return string(text)
	}
	if a, b := sign(gpuPod("a", 300, "")), sign(gpuPod("b", 300, "0")); a != b {
		t.Errorf("like pods: %s, %s", a, b)
	}
	if a, b := sign(gpuPod("a", 300, "")), sign(gpuPod("a", 301, "")); a == b {
		t.Errorf("other pods: %s, %s", a, b)
	}
}

func TestRulesAllowToAnnotatePods(t *testing.T) {
	rules, err := Rules(scheduler.NewArguments(nil))
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}}
	if diff := cmp.Diff(want, rules); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	const begin = `{"resource": "example.com/gpu", `
	for text, want := range map[string]string{
		`{"resources": "x"}`:                               `unknown field "resources"`,
		`{"devices": {"units": 1000}}`:                     "resource: is required with devices or annotations",
		`{"devices": {"countResource": "example.com/n"}}`:  "resource: is required with devices or annotations",
		`{"annotations": {"index": "example.com/i"}}`:      "resource: is required with devices or annotations",
		`{"annotations": {"time": "example.com/t"}}`:       "resource: is required with devices or annotations",
		`{"annotations": {"set": {"example.com/s": "x"}}}`: "resource: is required with devices or annotations",
		`{"resource": "gpu"}`:                              `resource: "gpu" is not the name of an extended resource`,
		begin + `"devices": {}}`:                           "devices: one of units and countResource is required",
		begin +
			`"devices": {"units": 1, "countResource": "example.com/n"}}`: "devices: one of units and countResource is required",
		begin +
			`"devices": {"units": -1}}`: "devices.units: -1 is less than 1",
		begin +
			`"devices": {"countResource": "n"}}`: `devices.countResource: "n" is not the name`,
		begin +
			`"devices": {"units": 1}}`: "annotations.index: is required",
		begin +
			`"devices": {"units": 1}, "annotations": {"index": "a b"}}`: `annotations.index: "a b" is not an annotation key`,
		begin +
			`"devices": {"units": 1}, "annotations": {"index": "a", "time": "a"}}`: "annotations: a key is given twice",
		begin +
			`"devices": {"units": 1}, "annotations": {"index": "a", "set": {"a": "b"}}}`: "annotations: a key is given twice",
		`{"workload": [{"cpu": "1"}]}`: "workload[0].amount: 0 is " +
			"less than 1",
		`{"workload": [{"amount": 1, "cpu": "-1"}]}`: "workload[0].cpu: -1 is less " +
			"than 0",
		`{"workload": [{"amount": 1, "models": ["T4"]}]}`: "workload[0].models: need modelLabel",
		`{"modelLabel": "a b"}`:                           `modelLabel: "a b" is not the key of a label`,
		`{"workload": [{"amount": 1}, {"amount": 1, "weight": -2}]}`: "workload[1].weight: -2 is " +
			"less than 0",
	} {
		if _, err := Rules(scheduler.NewArguments([]byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
