package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// usageOf returns nodes n0, n1 and so on with 1000 thousandths of a CPU, of which pods request as
// many. A node with a negative number has no CPU.
func usageOf(requested ...int64) *report.Usage {
	var u report.Usage
	for i, request := range requested {
		name := fmt.Sprintf("n%03d", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("10")}
		if request >= 0 {
			n.Status.Allocatable["cpu"] = resource.MustParse("1")
		}
		u.AddNode(n)
		if request > 0 {
			u.AddPod(podOf(name, fmt.Sprint("p", i), request))
		}
	}
	return &u
}

func podOf(node, name string, cpu int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(cpu, resource.DecimalSI)}}}}
	return p
}

// Each node has the same cell before and after, also if other nodes have none.
func TestCellsOfAHeatMap(t *testing.T) {
	requested := make([]int64, 42)
	requested[0], requested[1], requested[2], requested[39], requested[40], requested[41] = -1, 99, 100, 999, 1000, 2500
	u := usageOf(requested...)
	d, _ := newData(u, u)
	got := newChart(d, 0, u, u, true)
	if got.Resource != "cpu" || got.Width != 480 || got.Height != 24 || len(got.Rows) != 0 {
		t.Errorf("%s: %d x %d, %d rows", got.Resource, got.Width, got.Height, len(got.Rows))
	}
	if diff := cmp.Diff(got.Sides[0].Cells, got.Sides[1].Cells); diff != "" {
		t.Errorf("before and after differ: %s", diff)
	}
	cells := got.Sides[0].Cells
	if len(cells) != 41 {
		t.Fatalf("%d cells", len(cells))
	}
	want := []cell{{X: 12, Node: 1}, {X: 24, Node: 2, Level: 1}, {X: 468, Node: 39, Level: 9},
		{Y: 12, Node: 40, Level: 10}, {X: 12, Y: 12, Node: 41, Level: 10}}
	if diff := cmp.Diff(want, []cell{cells[0], cells[1], cells[38], cells[39], cells[40]}); diff != "" {
		t.Error(diff)
	}
	for nodes, height := range map[int]int{1: 12, 40: 12, 41: 24} {
		c := newChart(data{Nodes: d.Nodes[:nodes], Resources: d.Resources}, 0, u, u, true)
		if c.Height != height {
			t.Errorf("%d nodes have the height %d", nodes, c.Height)
		}
	}
}

func TestCurve(t *testing.T) {
	for _, tc := range []struct {
		name      string
		requested []int64
		want      string
	}{
		{"no node", nil, ""},
		{"no node with the resource", []int64{-1}, ""},
		{"one", []int64{500}, "0.0,60.0"},
		{"ascending, and at most full", []int64{2000, 0, 250}, "0.0,120.0 200.0,90.0 400.0,0.0"},
		{"without the resource", []int64{1000, -1, 0}, "0.0,120.0 400.0,0.0"},
	} {
		if got := curve(nodesByName(usageOf(tc.requested...)), "cpu"); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	var u report.Usage
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	n.Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	u.AddNode(n)
	if got := curve(nodesByName(&u), "example.com/gpu"); got != "0.0,120.0" {
		t.Errorf("a node with one device: %s", got)
	}
	for nodes, want := range map[int]int{400: 400, 401: 400, 900: 400} {
		u := usageOf(make([]int64, nodes)...)
		u.AddPod(podOf("n005", "p", 500))
		points := strings.Fields(curve(nodesByName(u), "cpu"))
		if len(points) != want || points[0] != "0.0,120.0" || points[want-1] != "400.0,60.0" {
			t.Errorf("%d nodes have %d points, from %s to %s", nodes, len(points), points[0], points[len(points)-1])
		}
	}
}

func TestBars(t *testing.T) {
	before, after := usageOf(0, 500, -1), usageOf(2000, 1000)
	after.AddPod(podOf("n001", "second", 1))
	after.AddPod(podOf("n001", "without-requests", 0))
	d, _ := newData(before, after)
	got := newChart(d, 0, before, after, false)
	want := chart{Resource: "cpu", Maximum: 2000, Width: 400, Height: 42, Left: 34, CurveW: 400, CurveH: 120,
		Rows: []row{{"n000", "n000", 0}, {"n001", "n001", 14}, {"n002", "n002", 28}},
		Sides: [2]side{{Title: "before", Bars: []bar{{Has: "200", Used: "0", Figure: "0 of 1"},
			{Y: 14, Has: "200", Used: "100", Borders: "M100 14v12", Figure: "500m of 1"},
			{Y: 28, Has: "0", Used: "0", Figure: "0 of 0"}}},
			{Title: "after", Bars: []bar{{Has: "200", Used: "400", Borders: "M400 0v12", Figure: "2 of 1", Over: true},
				{Y: 14, Has: "200", Used: "200.2", Borders: "M200 14v12M200.2 14v12", Figure: "1001m of 1", Over: true}}}},
		Curve: [2]string{"0.0,120.0 400.0,60.0", "0.0,0.0 400.0,0.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Total() != 436 {
		t.Errorf("the whole width is %d", got.Total())
	}
	none := chart{Resource: "example.com/gpu"}
	if got := none.bars(d.Nodes[:1], nodesByName(before)); len(got) != 1 || got[0].Has != "0" || got[0].Over {
		t.Errorf("bars of a resource that no node has: %v", got)
	}
}

// A label has at most 24 letters, and no domain that all nodes have.
func TestLabels(t *testing.T) {
	const letters = "äbcdefghijklmnopqrstuvwxyz"
	for _, tc := range []struct{ names, want []string }{
		{[]string{"a.example.com", "b.example.com"}, []string{"a", "b"}},
		{[]string{"a.example.com", "b.example.org"}, []string{"a.example.com", "b.example.org"}},
		{[]string{"a.example.com", "b"}, []string{"a.example.com", "b"}},
		{[]string{"b", "a.example.com"}, []string{"b", "a.example.com"}},
		{[]string{letters[:25]}, []string{letters[:25]}},
		{[]string{letters[:26]}, []string{letters[:24] + "…"}},
	} {
		domain := commonDomain(tc.names)
		var got []string
		for _, name := range tc.names {
			got = append(got, shorten(name, domain))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// The charts show single pods of up to 30,000.
func TestThePodsOfAHugeClusterAreLeftOut(t *testing.T) {
	u := usageOf(0)
	for i := range mostPods {
		u.AddPod(podOf("n000", fmt.Sprint("p", i), 1))
	}
	if d, hidden := newData(u, usageOf(0)); hidden != 0 || len(d.Pods) != mostPods {
		t.Errorf("%d pods, %d are hidden", len(d.Pods), hidden)
	}
	if d, hidden := newData(u, usageOf(1)); hidden != 0 || len(d.Pods) != mostPods {
		t.Errorf("%d pods, %d are hidden: a pod that is on both sides counts twice", len(d.Pods), hidden)
	}
	u.AddPod(podOf("n000", "one-more", 1))
	d, hidden := newData(u, usageOf(0))
	want := data{Nodes: []string{"n000"}, Resources: []string{"cpu", "pods"}, Namespaces: []string{}, Pods: []podData{}}
	if diff := cmp.Diff(want, d); diff != "" || hidden != mostPods+1 {
		t.Errorf("%d are hidden: %s", hidden, diff)
	}
}

func TestAListCountsWhatItDoesNotShow(t *testing.T) {
	var l list
	for i := range mostRows {
		l.add(fmt.Sprint(i))
	}
	if len(l.Rows) != mostRows || l.More != 0 || l.Total() != mostRows {
		t.Errorf("%d rows and %d more", len(l.Rows), l.More)
	}
	l.add("a")
	l.add("b")
	if len(l.Rows) != mostRows || l.More != 2 || l.Total() != mostRows+2 || l.Rows[mostRows-1][0] != "999" {
		t.Errorf("%d rows and %d more, the last is %s", len(l.Rows), l.More, l.Rows[len(l.Rows)-1])
	}
}
