package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Price is the price for a node type, in any currency and for any time.
type Price struct {
	// Label and Value are the label on nodes with the type.
	Label, Value string
	Price        float64
}

// ParsePrice reads TYPE=PRICE, where TYPE is an instance type, or a label's KEY=VALUE.
func ParsePrice(text string) (Price, error) {
	at := strings.LastIndexByte(text, '=')
	if at <= 0 {
		return Price{}, fmt.Errorf("%q: expected TYPE=PRICE, such as m5.large=0.096, or KEY=VALUE=PRICE of a label", text)
	}
	number, err := strconv.ParseFloat(text[at+1:], 64)
	if err != nil || number < 0 || math.IsInf(number, 0) || math.IsNaN(number) {
		return Price{}, fmt.Errorf("%q: the price must be a number from 0", text)
	}
	p := Price{Label: corev1.LabelInstanceTypeStable, Value: text[:at], Price: number}
	if key, value, ok := strings.Cut(text[:at], "="); ok {
		p.Label, p.Value = key, value
	}
	return p, nil
}

// Type returns the type as [ParsePrice] reads it.
func (p Price) Type() string {
	if p.Label == corev1.LabelInstanceTypeStable {
		return p.Value
	}
	return p.Label + "=" + p.Value
}

// FormatPrice formats an amount of money without an exponent.
func FormatPrice(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }

// Cost is the nodes' cost.
type Cost struct {
	Nodes float64 `json:"nodes"`
	// EmptyNodes is the part for nodes that have only DaemonSet pods and static pods.
	EmptyNodes float64 `json:"emptyNodes"`
	// Unpriced is the number of nodes without a price.
	Unpriced int `json:"unpriced"`
	// Types are the node types, by name.
	Types []TypeCost `json:"types"`
}

// TypeCost are the nodes with a type, and the price for one.
type TypeCost struct {
	Type       string  `json:"type"`
	Price      float64 `json:"price"`
	Nodes      int     `json:"nodes"`
	EmptyNodes int     `json:"emptyNodes"`
}

// Price adds the nodes' cost to the figures, also to the steps' figures. If several prices match a
// node, the first one counts.
func (r *Report) Price(prices []Price) {
	if len(prices) == 0 {
		return
	}
	r.price(prices)
	if r.Summary.Before == nil || r.Summary.After == nil {
		return
	}
	types := CompareCosts(r.Summary.Before.Cost, r.Summary.After.Cost)
	for _, p := range prices {
		if !slices.ContainsFunc(types, func(t TypeChange) bool { return t.Type == p.Type() }) {
			r.Notes = append(r.Notes, "no node costs the price of "+p.Type())
		}
	}
}

func (r *Report) price(prices []Price) {
	before, after := r.State()
	for _, side := range []struct {
		figures *Distribution
		nodes   []*Node
	}{{r.Summary.Before, before.List()}, {r.Summary.After, after.List()}} {
		if side.figures != nil {
			side.figures.Cost = cost(side.nodes, prices)
		}
	}
	for _, step := range r.Steps {
		step.price(prices)
	}
}

// PriceOf returns the first price that matches a node's labels.
func PriceOf(prices []Price, labels map[string]string) (Price, bool) {
	i := slices.IndexFunc(prices, func(p Price) bool {
		value, has := labels[p.Label]
		return has && value == p.Value
	})
	if i < 0 {
		return Price{}, false
	}
	return prices[i], true
}

func cost(nodes []*Node, prices []Price) *Cost {
	c := &Cost{Types: []TypeCost{}}
	for _, n := range nodes {
		p, ok := PriceOf(prices, n.labels)
		if !ok {
			c.Unpriced++
			continue
		}
		t := c.costOf(p)
		t.Nodes++
		if n.Empty() {
			t.EmptyNodes++
		}
	}
	for _, t := range c.Types {
		c.Nodes += t.Price * float64(t.Nodes)
		c.EmptyNodes += t.Price * float64(t.EmptyNodes)
	}
	c.Nodes, c.EmptyNodes = rounded(c.Nodes), rounded(c.EmptyNodes)
	slices.SortFunc(c.Types, func(a, b TypeCost) int { return cmp.Compare(a.Type, b.Type) })
	return c
}

// rounded removes the rounding errors from adding binary fractions.
func rounded(amount float64) float64 { return math.Round(amount*1e6) / 1e6 }

// TypeChange are the nodes with a type before and after.
type TypeChange struct {
	Type          string
	Price         float64
	Before, After TypeCost
}

// CompareCosts returns the types in both, by name.
func CompareCosts(before, after *Cost) []TypeChange {
	changes := map[string]*TypeChange{}
	change := func(t TypeCost) *TypeChange {
		if changes[t.Type] == nil {
			changes[t.Type] = &TypeChange{Type: t.Type, Price: t.Price}
		}
		return changes[t.Type]
	}
	for _, t := range before.Types {
		change(t).Before = t
	}
	for _, t := range after.Types {
		change(t).After = t
	}
	all := make([]TypeChange, 0, len(changes))
	for _, c := range changes {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b TypeChange) int { return cmp.Compare(a.Type, b.Type) })
	return all
}

// costOf returns the entry for a type.
func (c *Cost) costOf(p Price) *TypeCost {
	name := p.Type()
	i := slices.IndexFunc(c.Types, func(t TypeCost) bool { return t.Type == name })
	if i < 0 {
		i = len(c.Types)
		c.Types = append(c.Types, TypeCost{Type: name, Price: p.Price})
	}
	return &c.Types[i]
}
