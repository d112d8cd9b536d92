package replay

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Tally sums up nodes and the pods on them.
type Tally struct {
	// Waiting and Running count pods.
	Waiting, Running       int
	allocatable, requested report.Amounts
	nodes                  map[string]*tallied
	prices                 []report.Price
}

// tallied is a node. Pods counts the pods that can move.
type tallied struct {
	allocatable report.Amounts
	price       float64
	pods        int
	known       bool
}

// newTally returns a tally without nodes and pods.
func newTally(prices []report.Price) *Tally {
	return &Tally{allocatable: report.Amounts{}, requested: report.Amounts{}, nodes: map[string]*tallied{}, prices: prices}
}

func (t *Tally) node(name string) *tallied {
	if t.nodes[name] == nil {
		t.nodes[name] = &tallied{}
	}
	return t.nodes[name]
}

// SetNode adds a node or changes it.
func (t *Tally) SetNode(node *corev1.Node) {
	n := t.node(node.Name)
	add(t.allocatable, n.allocatable, -1)
	n.allocatable, n.known = report.NewAmounts(node.Status.Allocatable), true
	add(t.allocatable, n.allocatable, 1)
	p, _ := report.PriceOf(t.prices, node.Labels)
	n.price = p.Price
}

// RemoveNode removes a node. Its pods are removed by their own.
func (t *Tally) RemoveNode(name string) {
	if n := t.nodes[name]; n != nil {
		add(t.allocatable, n.allocatable, -1)
		n.allocatable, n.known = nil, false
	}
}

// AddPod adds a pod on a node. The name may be empty.
func (t *Tally) AddPod(node string, requests report.Amounts, fixed bool) {
	t.pod(node, requests, fixed, 1)
}

// RemovePod removes a pod that AddPod added.
func (t *Tally) RemovePod(node string, requests report.Amounts, fixed bool) {
	t.pod(node, requests, fixed, -1)
}

func (t *Tally) pod(node string, requests report.Amounts, fixed bool, sign int) {
	t.Running += sign
	add(t.requested, requests, int64(sign))
	if !fixed {
		t.node(node).pods += sign
	}
}

func add(to, more report.Amounts, sign int64) {
	for name, amount := range more {
		to[name] += sign * amount
	}
}

// Values are figures at a moment, or means over a time.
type Values struct {
	Nodes   float64 `json:"nodes"`
	Running float64 `json:"running"`
	Waiting float64 `json:"waiting"`
	// Utilization is the requested part of all nodes' resources, from 0 to 1.
	Utilization map[string]float64 `json:"utilization"`
	// Cost is the price for all nodes, and EmptyCost the price for nodes with only pods that cannot
	// move.
	Cost      float64 `json:"cost,omitempty"`
	EmptyCost float64 `json:"emptyCost,omitempty"`
}

// Values returns the figures at this moment.
func (t *Tally) Values() Values {
	v := Values{Running: float64(t.Running), Waiting: float64(t.Waiting), Utilization: map[string]float64{}}
	for _, n := range t.nodes {
		if !n.known {
			continue
		}
		v.Nodes++
		if v.Cost += n.price; n.pods == 0 {
			v.EmptyCost += n.price
		}
	}
	for name, has := range t.allocatable {
		if has > 0 {
			v.Utilization[name] = float64(t.requested[name]) / float64(has)
		}
	}
	return v
}

// add adds figures that hold for part of a time.
func (v *Values) add(o Values, part float64) {
	v.Nodes += part * o.Nodes
	v.Running += part * o.Running
	v.Waiting += part * o.Waiting
	v.Cost += part * o.Cost
	v.EmptyCost += part * o.EmptyCost
	if v.Utilization == nil {
		v.Utilization = map[string]float64{}
	}
	for name, utilization := range o.Utilization {
		v.Utilization[name] += part * utilization
	}
}

// intervals is the number of points in a series.
const intervals = 500

// Series are figures over time: means over equal intervals.
type Series struct {
	tally  *Tally
	length time.Duration
	last   time.Duration
	points []Values
	most   float64 // waiting pods
}

// newSeries returns a tally's series over a time.
func newSeries(t *Tally, length time.Duration) *Series {
	return &Series{tally: t, length: max(length, time.Millisecond), points: make([]Values, intervals)}
}

// Advance records that the tally has not changed until a time. It is called before each change.
func (s *Series) Advance(until time.Duration) {
	until = min(until, s.length)
	if until <= s.last {
		return
	}
	now := s.tally.Values()
	s.most = max(s.most, now.Waiting)
	width := float64(s.length) / intervals
	for s.last < until {
		i := min(int(float64(s.last)/width), intervals-1)
		end := min(time.Duration(math.Ceil(float64(i+1)*width)), until)
		end = max(end, s.last+1)
		s.points[i].add(now, float64(end-s.last)/width)
		s.last = end
	}
}

// Point are the mean figures in an interval that begins at a time.
type Point struct {
	Seconds float64 `json:"seconds"`
	Values
}

// Points returns the points until the last change.
func (s *Series) Points() []Point {
	var all []Point
	width := s.length.Seconds() / intervals
	for i := range s.points {
		if float64(i)*width < s.last.Seconds() {
			all = append(all, Point{Seconds: round(float64(i)*width, 3), Values: s.points[i].rounded()})
		}
	}
	return all
}

// Mean returns the mean figures over the whole time.
func (s *Series) Mean() Values {
	var mean Values
	for i := range s.points {
		mean.add(s.points[i], 1.0/intervals)
	}
	return mean.rounded()
}

func (v Values) rounded() Values {
	r := Values{Nodes: round(v.Nodes, 3), Running: round(v.Running, 3), Waiting: round(v.Waiting, 3),
		Cost: round(v.Cost, 6), EmptyCost: round(v.EmptyCost, 6), Utilization: map[string]float64{}}
	for name, utilization := range v.Utilization {
		r.Utilization[name] = round(utilization, 6)
	}
	return r
}

func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

// Resources returns the resources in figures in order: CPU, memory and pods first.
func (v Values) Resources() []string {
	names := slices.Collect(maps.Keys(v.Utilization))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(report.CompareResources(a, b), cmp.Compare(a, b)) })
	return names
}
