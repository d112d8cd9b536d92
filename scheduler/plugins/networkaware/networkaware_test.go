package networkaware

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

const minimal = `{"group": "network.example.com", "version": "v1alpha1", "resource": "networkmetrics", "field": "status.latency"`

func nodes(n int) []scheduler.NodeInfo {
	var list []scheduler.NodeInfo
	for i := range n {
		list = append(list, plugintest.NewNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}))
	}
	return list
}

func metric(name string, value interface{}) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"metadata": map[string]interface{}{"name": name}, "status": map[string]interface{}{"latency": value},
	}}
}

func newPlugin(t testing.TB, args string) *NetworkAware {
	t.Helper()
	s, err := decode(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(nil, s.name())
	if err != nil {
		t.Fatal(err)
	}
	return &NetworkAware{logs: (&plugintest.Handle{}).Logger, settings: s, values: newValues(s), metrics: m}
}

func TestScoreIsRelativeToBestAndWorstValue(t *testing.T) {
	for _, test := range []struct {
		name, args string
		objects    []*unstructured.Unstructured
		skipped    bool
		want       []int64
	}{
		{"lower is better", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", int64(10)), metric("node-1", 20.0), metric("node-2", "30")}, false, []int64{100, 50, 0}},
		{"higher is better", minimal + `, "prefer": "Higher"}`, []*unstructured.Unstructured{
			metric("node-0", int64(10)), metric("node-1", int64(20)), metric("node-2", int64(30))}, false, []int64{0, 50, 100}},
		{"a node without an object gets the mean", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", int64(10)), metric("node-2", int64(30))}, false, []int64{100, 50, 0}},
		{"equal values", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", int64(10)), metric("node-1", int64(10))}, false, []int64{100, 100, 100}},
		{"one value", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", int64(10))}, false, []int64{100, 100, 100}},
		{"no values", minimal + `}`, []*unstructured.Unstructured{metric("other", int64(10))}, true, []int64{0, 0, 0}},
		{"the largest range", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", -math.MaxFloat64), metric("node-1", 0.0), metric("node-2",
				math.MaxFloat64)}, false, []int64{100, 50, 0}},
		{"a range of which half is 0", minimal + `}`, []*unstructured.Unstructured{
			metric("node-0", 0.0), metric("node-1", math.SmallestNonzeroFloat64)}, false, []int64{100, 100, 100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			plugin := newPlugin(t, test.args)
			for _, o := range test.objects {
				if err := plugin.values.set(o); err != nil {
					t.Fatal(err)
				}
			}
			cycle, list := plugintest.NewState(), nodes(3)
			if got := plugin.PreScore(t.Context(), cycle, &corev1.Pod{},
				list); (got.Code() == scheduler.CodeSkip) != test.skipped {
				t.Errorf("PreScore: %s", got)
			}
			var got []int64
			for _, n := range list {
				score, status := plugin.Score(t.Context(), cycle, &corev1.Pod{}, n)
				if !status.IsSuccess() {
					t.Error(status)
				}
				got = append(got, score)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// This test verifies the declaration of Sign.
func TestScoresDoNotDependOnThePod(t *testing.T) {
	n := newPlugin(t, minimal+`}`)
	for _, object := range []*unstructured.Unstructured{metric("node-0", int64(10)), metric("node-1", int64(20))} {
		if err := n.values.set(object); err != nil {
			t.Fatal(err)
		}
	}
	results := map[string]bool{}
	for _, pod := range []*corev1.Pod{plugintest.NewPod("a", "small", nil),
		plugintest.NewPod("b", "large", plugintest.Requests("3", "1Gi"))} {
		state := plugintest.NewState()
		result := fmt.Sprint(n.PreScore(t.Context(), state, pod, nodes(2)))
		for _, node := range nodes(2) {
			score, status := n.Score(t.Context(), state, pod, node)
			result += fmt.Sprint(" ", score, status)
		}
		part, status := n.Sign(t.Context(), pod)
		results[fmt.Sprint(result, part, status)] = true
	}
	if len(results) != 1 {
		t.Errorf("got %v", results)
	}
}

func TestValuesAreUpdatedWithTheObjects(t *testing.T) {
	plugin := newPlugin(t, `{"version": "v1", "resource": "links", "field": "status.latency", "nodeKey": "spec.node"}`)
	link := func(name, node string, value interface{}) *unstructured.Unstructured {
		o := metric(name, value)
		o.Object["spec"] = map[string]interface{}{"node": node}
		return o
	}
	expect := func(what string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, plugin.values.nodes); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	set := func(o *unstructured.Unstructured) {
		t.Helper()
		if err := plugin.values.set(o); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := plugin.values.of("node-0"); ok {
		t.Error("a node has a value before its object")
	}
	set(link("a", "node-0", "12ms"))
	set(link("b", "node-0", "30ms"))
	expect("the worse of two objects counts", map[string]float64{"node-0": 0.03})
	set(link("b", "node-1", "5ms"))
	expect("an object moves to another node", map[string]float64{"node-0": 0.012, "node-1": 0.005})
	plugin.values.remove("", "a")
	expect("a deleted object has no value", map[string]float64{"node-1": 0.005})
	plugin.values.remove("", "unknown")
	expect("an unknown object is deleted", map[string]float64{"node-1": 0.005})
	many := strings.Repeat("9", 50)
	for _, bad := range []struct {
		object *unstructured.Unstructured
		want   string
	}{
		{link("b", "node-1", "fast"), `value at status.latency: "fast" is not a number, quantity or duration`},
		{link("b", "", "5ms"), "it has no node name at spec.node"},
		{metric("b", "5ms"), "it has no node name at spec.node"},
		{link("b", "node-1", nil), "it has no value at status.latency"},
		{link("b", "node-1", true), "value at status.latency: a bool is not a number"},
		{link("b", "node-1", "NaN"), `value at status.latency: "NaN" is not a finite number`},
		{link("b", "node-1", "9999999999999999999e99999999"),
			`value at status.latency: "9999999999999999999e99999999" is not a number, quantity or duration`},
		{link("b", "node-1", "1e400"), `value at status.latency: "1e400" is not a finite number`},
		{link("b", "node-1", "-1e400"), `value at status.latency: "-1e400" is not a finite number`},
		{link("b", "node-1", math.Inf(1)), `value at status.latency: "+Inf" is not a finite number`},
		{link("b", "node-1", math.NaN()), `value at status.latency: "NaN" is not a finite number`},
		{link("b", "node-1", many[1:]+"?"), fmt.Sprintf("value at status.latency: %q is not a number, quantity or duration",
			many[1:]+"?")},
		{link("b", "node-1", many+"?"), fmt.Sprintf("value at status.latency: %q is not a number, quantity or duration",
			many+"…")},
	} {
		set(link("b", "node-1", "5ms"))
		if err := plugin.values.set(bad.object); err == nil || err.Error() != bad.want {
			t.Errorf("%v: got %v, want %s", bad.object.Object, err, bad.want)
		}
		expect("an invalid object has no value", map[string]float64{})
	}
	if n := len(plugin.values.objects) + len(plugin.values.byNode); n > 0 {
		t.Errorf("%d entries of objects are left", n)
	}
}

func TestTheWorstOfTheObjectsOfANodeCounts(t *testing.T) {
	for prefer, want := range map[string]float64{"Lower": 9, "Higher": 1} {
		plugin := newPlugin(t, `{"version": "v1", "resource": "links", "field": "status.latency", "nodeKey": "status.node",
			"prefer": "`+prefer+`"}`)
		for i, value := range []int64{5, 1, 7, 9, 3, 5, 6, 4} {
			link := metric(fmt.Sprint("link-", i), value)
			link.Object["status"].(map[string]interface{})["node"] = "node-0"
			if err := plugin.values.set(link); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := plugin.values.of("node-0"); got != want || !ok {
			t.Errorf("prefer %s: %v, want %v", prefer, got, want)
		}
	}
}

func TestValuesHaveManyForms(t *testing.T) {
	for text, want := range map[string]float64{"20": 20, "1.5e3": 1500, "0x1p4": 16, "10Mi": 10 << 20, "12ms": 0.012} {
		if got, err := number(text); got != want || err != nil {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

func TestPathNamesOneField(t *testing.T) {
	object := map[string]interface{}{
		"metadata": map[string]interface{}{"labels": map[string]interface{}{"kubernetes.io/hostname": "n"}},
		"status":   map[string]interface{}{"links": []interface{}{map[string]interface{}{"rtt": int64(7)}}},
	}
	for _, test := range []struct {
		path string
		want interface{}
	}{
		{"status.links[0].rtt", int64(7)},
		{".status.links[0].rtt", int64(7)},
		{"{.status.links[0].rtt}", int64(7)},
		{"{status.links[0].rtt}", int64(7)},
		{"metadata.labels.a.b", nil},
		{"status.links[0].rtt[0]", nil},
		{strings.Repeat("a.", maxPath-1) + "a", nil},
		{"$.status['links'][0].rtt", int64(7)},
		{"metadata.labels['kubernetes.io/hostname']", "n"},
		{`metadata.labels["kubernetes.io/hostname"]`, "n"},
		{"status.links[1].rtt", nil},
		{"status.links.rtt", nil},
		{"status[0]", nil},
		{"spec.node", nil},
	} {
		p, err := parsePath(test.path)
		if err != nil {
			t.Error(err)
		}
		if got, ok := p.find(object); got != test.want || ok != (got != nil) {
			t.Errorf("%s: %v, want %v", test.path, got, test.want)
		}
	}
	for _, wrong := range []string{"", ".", "a..b", "a.", "a[*]", "a[-1]", "[0]", "a[?(@.b)]", "..a", "{a", "{ab", "ab}",
		"a b", "a['']", strings.Repeat("a.", maxPath) + "a", "a[99999999]"} {
		if p, err := parsePath(wrong); err == nil {
			t.Errorf("%q was parsed as %v", wrong, p)
		}
	}
}

func TestInvalidArgumentsNameTheField(t *testing.T) {
	for _, test := range []struct{ name, args, want string }{
		{"nothing", ``, "version: is required"},
		{"unknown field", minimal + `, "weight": 2}`, `"weight"`},
		{"no resource", `{"group": "a.b", "version": "v1", "field": "a"}`, "resource: is required"},
		{"no field", `{"version": "v1", "resource": "links"}`, "field: is required"},
		{"wrong group", `{"group": "A!", "version": "v1", "resource": "links", "field": "a"}`, "group:"},
		{"resource is a kind", `{"version": "v1", "resource": "Link", "field": "a"}`, "resource:"},
		{"wrong namespace", minimal + `, "namespace": "a.b"}`, "namespace:"},
		{"wrong path", `{"version": "v1", "resource": "links", "field": "a[*].b"}`, "field:"},
		{"wrong node key", minimal + `, "nodeKey": "a..b"}`, "nodeKey:"},
		{"wrong preference", minimal + `, "prefer": "lower"}`, `prefer: "lower"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Rules(scheduler.NewArguments([]byte(test.args)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
}

func TestRulesAllowToReadTheResource(t *testing.T) {
	got, err := Rules(scheduler.NewArguments([]byte(minimal + `}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"network.example.com"}, Resources: []string{"networkmetrics"},
		Verbs: []string{"get", "list", "watch"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScoreDoesNotAllocate(t *testing.T) {
	plugin := newPlugin(t, minimal+`}`)
	if err := plugin.values.set(metric("node-0", int64(1))); err != nil {
		t.Fatal(err)
	}
	cycle, list, pod, ctx := plugintest.NewState(), nodes(2), &corev1.Pod{}, t.Context()
	plugin.PreScore(ctx, cycle, pod, list)
	if allocs := testing.AllocsPerRun(100,
		func() { plugin.Score(ctx, cycle, pod, list[0]); plugin.Score(ctx, cycle, pod, list[1]) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("metadata.labels['kubernetes.io/hostname']")
	f.Add("{.status.links[0].rtt}")
	f.Fuzz(func(_ *testing.T, text string) {
		if p, err := parsePath(text); err == nil {
			p.find(map[string]interface{}{"a": []interface{}{int64(1)}})
		}
	})
}
