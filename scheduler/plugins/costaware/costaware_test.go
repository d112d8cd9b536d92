package costaware

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func newPlugin(t *testing.T, args string) *CostAware {
	t.Helper()
	c, err := New(t.Context(), scheduler.NewArguments([]byte(args)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// machine is a node of a size with labels, "key=value".
func machine(cpu, memory string, labels ...string) *plugintest.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
	return plugintest.NewNode(n)
}

func TestNodesWhereThePodCostsLeastArePreferred(t *testing.T) {
	const price, kind, capacity = "pmk-sched.io/price=", "node.kubernetes.io/instance-type=", "example.com/capacity="
	for name, tt := range map[string]struct {
		args  string
		pod   *corev1.Pod
		nodes []*plugintest.Node
		want  []int64
	}{
		"the same node at twice the price": {
			`{}`, plugintest.NewPod("a", "p", plugintest.Requests("1", "1Gi")),
			[]*plugintest.Node{machine("4", "16Gi", price+"0.1"), machine("4", "16Gi", price+"0.2")}, []int64{100, 50},
		},
		// A core costs 0.10/4 on the first, 0.16/8 on the second; memory in proportion.
		"a larger node whose price is lower in proportion": {
			`{}`, plugintest.NewPod("a", "p", plugintest.Requests("1", "4Gi")),
			[]*plugintest.Node{machine("4", "16Gi", price+"0.10"), machine("8", "32Gi", price+"0.16")}, []int64{80, 100},
		},
		// 4 of 8 cores and 1 of 32 Gi are (0.5+0.03125)/2 of the first; 4 of 4 and 1 of 64 are
		// (1+0.015625)/2 of the second, for the same price.
		"a pod that needs CPU": {
			`{}`, plugintest.NewPod("a", "p", plugintest.Requests("4", "1Gi")),
			[]*plugintest.Node{machine("8", "32Gi", price+"1"), machine("4", "64Gi", price+"1")}, []int64{100, 52},
		},
		"prices by instance type, spot at 30 %": {
			`{"prices": [{"value": "m.large", "price": 0.2}, {"value": "m.large", "price": 9}], "factors": [{"label": "example.com/capacity", "value": "spot", "factor": 0.3}]}`,
			plugintest.NewPod("a", "p", plugintest.Requests("1", "1Gi")),
			[]*plugintest.Node{machine("4", "16Gi", kind+"m.large"), machine("4", "16Gi", kind+"m.large", capacity+"spot"),
				machine("4", "16Gi", price+"0.06")}, []int64{30, 100, 100},
		},
		"the price of another instance type does not count": {
			`{"prices": [{"value": "m.large", "price": 0.2}], "unpriced": "Avoid"}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi", kind+"m.large"), machine("4", "16Gi", kind+"m.small")}, []int64{100, 0},
		},
		"prices are below 1e9": {
			`{"unpriced": "Avoid"}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi", price+"999999999"), machine("4", "16Gi", price+"1e9")}, []int64{100, 0},
		},
		"one node has a price": {
			`{}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi", price+"0.1"), machine("4", "16Gi")}, []int64{100, 100},
		},
		"nodes without a price get the mean": {
			`{}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi", price+"0.1"), machine("4", "16Gi", price+"0.4"), machine("4", "16Gi"),
				machine("4", "16Gi", price+"free")}, []int64{100, 25, 63, 63},
		},
		"or are avoided": {
			`{"unpriced": "Avoid"}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi", price+"0.1"), machine("4", "16Gi", price+"-1"),
				machine("4", "16Gi", price+"NaN")}, []int64{100, 0, 0},
		},
		"no node has one": {`{}`, plugintest.NewPod("a", "p", nil),
			[]*plugintest.Node{machine("4", "16Gi"), machine("4", "16Gi")}, []int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c, state := newPlugin(t, tt.args), plugintest.NewState()
			var scores []scheduler.NodeScore
			for _, n := range tt.nodes {
				raw, status := c.Score(t.Context(), state, tt.pod, n)
				if !status.IsSuccess() {
					t.Fatal(status)
				}
				scores = append(scores, scheduler.NodeScore{Score: raw})
			}
			if status := c.NormalizeScore(t.Context(), state, tt.pod, scores); !status.IsSuccess() {
				t.Fatal(status)
			}
			var got []int64
			for _, s := range scores {
				got = append(got, s.Score)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCostIsThePriceOfTheShareOfTheNode(t *testing.T) {
	c, pod := newPlugin(t, ""), plugintest.NewPod("a", "p", plugintest.Requests("1", "1Gi"))
	for name, tt := range map[string]struct {
		node *plugintest.Node
		want int64
	}{
		"the whole node":         {machine("1", "1Gi", "pmk-sched.io/price=1"), 1e9},
		"half of CPU and memory": {machine("2", "2Gi", "pmk-sched.io/price=1"), 5e8},
		"more CPU than it has":   {machine("500m", "1Gi", "pmk-sched.io/price=1"), 15e8},
		"the least CPU":          {machine("1m", "1Gi", "pmk-sched.io/price=1"), 5005e8},
		"the least memory":       {machine("1", "1", "pmk-sched.io/price=1e-9"), 1<<29 + 1},
		"a node without CPU":     {machine("0", "2Gi", "pmk-sched.io/price=1"), 1e9},
		"a node without memory":  {machine("2", "0", "pmk-sched.io/price=1"), 1e9},
		"a node without a price": {machine("1", "1Gi"), unpriced - 1},
	} {
		// A cost of 0 differs from no price.
		if got, status := c.Score(t.Context(), nil, pod, tt.node); got != tt.want+1 || status != nil {
			t.Errorf("%s: got %d, %v; want %d", name, got, status, tt.want+1)
		}
	}
}

func TestRequestIsTheLargerOfInitAndOtherContainers(t *testing.T) {
	pod := plugintest.NewPod("a", "p", plugintest.Requests("1", "1Gi"))
	pod.Spec.Containers = append(pod.Spec.Containers, pod.Spec.Containers[0])
	pod.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: plugintest.Requests("3",
		"1Gi")}}}
	pod.Spec.Overhead = plugintest.Requests("100m", "1Mi")
	if got, want := requestOf(pod), (request{3100, 2<<30 + 1<<20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := requestOf(plugintest.NewPod("a", "p", nil)), (request{100, 200 << 20}); got != want {
		t.Errorf("without requests: got %+v, want %+v", got, want)
	}
}

func TestPodsAreSignedByWhatTheyRequest(t *testing.T) {
	c := newPlugin(t, "")
	sign := func(cpu string) string {
		part, status := c.Sign(t.Context(), plugintest.NewPod("a", cpu, plugintest.Requests(cpu, "1Gi")))
		text, err := json.Marshal(part)
		if err != nil || !status.IsSuccess() {
			t.Fatal(err, status)
		}
		return string(text)
	}
	if a, b, other := sign("1"), sign("1000m"), sign("2"); a != b || a == other {
		t.Errorf("signed %s, %s, %s", a, b, other)
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"price": 1}`:          `unknown field "price"`,
		`{"priceLabel": "a b"}`: `priceLabel: "a b" is not a label key`,
		`{"prices": [{"label": "a b", "value": "x", "price": 1}]}`: `prices[0].label: "a b" is not a label key`,
		`{"prices": [{"price": 1}]}`: "prices[0]: value and a price of more than 0 are " +
			"required",
		`{"prices": [{"value": "x", "price": -1}]}`: "prices[0]: value and a price of more than 0 are " +
			"required",
		`{"factors": [{"value": "x", "factor": 1}]}`: `factors[0].label: "" is not a label key`,
		`{"factors": [{"label": "a", "value": "x", "factor": 0}]}`: "factors[0]: value and a factor of more than 0 are " +
			"required",
		`{"unpriced": "Ignore"}`: `unpriced: "Ignore" is neither Neutral nor Avoid`,
	} {
		if _, err := Rules(scheduler.NewArguments([]byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if c, err := New(t.Context(), scheduler.NewArguments([]byte(text)), nil); c != nil || err == nil {
			t.Errorf("%s: New accepts it", text)
		}
	}
}
