package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]report.Price{
		"m5.large=0.096":                        {Label: corev1.LabelInstanceTypeStable, Value: "m5.large", Price: 0.096},
		"pool=gpu=2":                            {Label: "pool", Value: "gpu", Price: 2},
		"example.com/pool==0":                   {Label: "example.com/pool"},
		corev1.LabelInstanceTypeStable + "=a=1": {Label: corev1.LabelInstanceTypeStable, Value: "a", Price: 1},
	} {
		got, err := report.ParsePrice(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "m5.large", "=1", "a=", "a=b", "a=-1", "a=NaN", "a=+Inf", "a=1e999"} {
		if got, err := report.ParsePrice(text); err == nil || !strings.Contains(err.Error(), "price") &&
			!strings.Contains(err.Error(), "PRICE") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// A node costs the first price that matches, and an empty one has only pods that cannot move.
func TestPricesOfNodes(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	controller := true
	daemon := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "small-1"}}
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &controller}}
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "small-2"}}
	moved := web.DeepCopy()
	moved.Spec.NodeName = "spot"
	var before, after report.Usage
	for u, pod := range map[*report.Usage]*corev1.Pod{&before: web, &after: moved} {
		small := map[string]string{corev1.LabelInstanceTypeStable: "small"}
		u.AddNode(node("small-1", small))
		u.AddNode(node("small-2", small))
		u.AddNode(node("spot", map[string]string{corev1.LabelInstanceTypeStable: "small", "spot": "true"}))
		u.AddNode(node("other", nil))
		u.AddPod(daemon)
		u.AddPod(pod)
	}
	r := &report.Report{Steps: []*report.Report{{}}}
	r.Measure(&before, &after)
	r.Steps[0].Measure(&before, &before)
	r.Price(nil)
	if r.Summary.Before.Cost != nil {
		t.Errorf("without prices: %+v", r.Summary.Before.Cost)
	}
	var prices []report.Price
	for _, text := range []string{"spot=true=0.25", "small=1", "large=4"} {
		p, err := report.ParsePrice(text)
		if err != nil {
			t.Fatal(err)
		}
		prices = append(prices, p)
	}
	r.Price(prices)
	want := &report.Cost{Nodes: 2.25, EmptyNodes: 1.25, Unpriced: 1, Types: []report.TypeCost{
		{Type: "small", Price: 1, Nodes: 2, EmptyNodes: 1}, {Type: "spot=true", Price: 0.25, Nodes: 1, EmptyNodes: 1},
	}}
	if diff := cmp.Diff(want, r.Summary.Before.Cost); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.Steps[0].Summary.After.Cost); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"no node costs the price of large"}, r.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	want.EmptyNodes, want.Types[0].EmptyNodes, want.Types[1].EmptyNodes = 2, 2, 0
	if diff := cmp.Diff(want, r.Summary.After.Cost); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
}

func TestPricesWithoutFigures(t *testing.T) {
	prices := []report.Price{{Label: "pool", Value: "a", Price: 1},
		{Label: corev1.LabelInstanceTypeStable, Value: "m5", Price: 2}}
	for _, s := range []report.Summary{{}, {Before: &report.Distribution{}}, {After: &report.Distribution{}}} {
		r := &report.Report{Summary: s, Steps: []*report.Report{{}}}
		r.Price(prices)
		if len(r.Notes) > 0 {
			t.Errorf("%+v: notes %q", s, r.Notes)
		}
	}
	if got := prices[0].Type() + ", " + prices[1].Type(); got != "pool=a, m5" {
		t.Errorf("types %s", got)
	}
	for labels, want := range map[[2]string]float64{{"pool", "a"}: 1, {"pool", "b"}: 0, {"other", "a"}: 0} {
		got, ok := report.PriceOf(prices, map[string]string{labels[0]: labels[1]})
		if got.Price != want || ok != (want > 0) {
			t.Errorf("%v: %g, %t", labels, got.Price, ok)
		}
	}
	got := report.CompareCosts(
		&report.Cost{Types: []report.TypeCost{{Type: "b", Price: 2, Nodes: 1}, {Type: "a", Price: 1, Nodes: 2}}},
		&report.Cost{Types: []report.TypeCost{{Type: "c", Price: 3, Nodes: 4}, {Type: "a", Price: 1, Nodes: 3}}})
	want := []report.TypeChange{
		{Type: "a", Price: 1, Before: report.TypeCost{Type: "a", Price: 1, Nodes: 2},
			After: report.TypeCost{Type: "a", Price: 1, Nodes: 3}},
		{Type: "b", Price: 2, Before: report.TypeCost{Type: "b", Price: 2, Nodes: 1}},
		{Type: "c", Price: 3, After: report.TypeCost{Type: "c", Price: 3, Nodes: 4}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
