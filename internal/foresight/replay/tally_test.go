package replay

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestCostsAndUtilizationOverTime(t *testing.T) {
	tally := newTally([]report.Price{{Label: corev1.LabelInstanceTypeStable, Value: "m5", Price: 2}})
	s := newSeries(tally, 100*minute)
	tally.SetNode(node("a", "2"))
	tally.SetNode(node("b", "2"))
	tally.AddPod("a", report.Amounts{"cpu": 1000}, false)
	tally.AddPod("b", report.Amounts{"cpu": 1000}, true) // of a DaemonSet
	s.Advance(50 * minute)
	tally.RemovePod("b", report.Amounts{"cpu": 1000}, true)
	tally.RemoveNode("b")
	tally.SetNode(node("a", "4")) // it has grown
	s.Advance(100 * minute)
	points := s.Points()
	first, last := points[0].Values, points[len(points)-1].Values
	want := Values{Nodes: 2, Running: 2, Cost: 4, EmptyCost: 2, Utilization: map[string]float64{"cpu": 0.5}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	want = Values{Nodes: 1, Running: 1, Cost: 2, Utilization: map[string]float64{"cpu": 0.25}}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("last (-want +got):\n%s", diff)
	}
	want = Values{Nodes: 1.5, Running: 1.5, Cost: 3, EmptyCost: 1, Utilization: map[string]float64{"cpu": 0.375}}
	if diff := cmp.Diff(want, s.Mean()); diff != "" {
		t.Errorf("mean (-want +got):\n%s", diff)
	}
}

// What a series has not reached has no point, and a figure that is constant is its mean, whatever
// the length of the series is.
func TestPointsOfASeries(t *testing.T) {
	for _, length := range []time.Duration{0, time.Millisecond, 7*time.Minute + 1, 100 * time.Minute} {
		tally := newTally(nil)
		tally.SetNode(node("a", "2"))
		tally.Waiting = 1
		s := newSeries(tally, length)
		length = max(length, time.Millisecond)
		for part := range time.Duration(11) {
			s.Advance(length * part / 10)
			s.Advance(length * part / 20) // before
			if want := int(50 * part); len(s.Points()) < want || len(s.Points()) > want+1 {
				t.Errorf("%s, %d of 10: %d points, want %d", length, part, len(s.Points()), want)
			}
		}
		tally.Waiting = 9
		s.Advance(length + time.Hour) // after the end
		values := Values{Nodes: 1, Waiting: 1, Utilization: map[string]float64{"cpu": 0}}
		if diff := cmp.Diff(values, s.Mean()); diff != "" {
			t.Errorf("%s: mean (-want +got):\n%s", length, diff)
		}
		points := s.Points()
		for i, p := range points {
			want := Point{Seconds: math.Round(length.Seconds()*float64(i)/500*1000) / 1000, Values: values}
			if diff := cmp.Diff(want, p); diff != "" || len(points) != 500 {
				t.Fatalf("%s: %d points, %d (-want +got):\n%s", length, len(points), i, diff)
			}
		}
	}
}

// The end of a series is in its last interval, also if the time before it cannot be told from it.
func TestTheLastIntervalEndsASeries(t *testing.T) {
	const length = 1<<60 - 1
	tally := newTally(nil)
	tally.Waiting = 1
	s := newSeries(tally, length)
	s.Advance(length - 1)
	s.Advance(length)
	points := s.Points()
	if last := points[len(points)-1].Values; len(points) != 500 || last.Waiting != 1 || s.Mean().Waiting != 1 {
		t.Errorf("%d points, the last is %+v", len(points), last)
	}
}

// Times of intervals are rounded, and each step of a series is at least as long as its clock can
// count.
func TestSeriesOfAnyLengthEnd(t *testing.T) {
	for _, length := range []time.Duration{420000000012, 3600000000010, 86400000000001} {
		s := newSeries(newTally(nil), length)
		s.Advance(length)
		if n := len(s.Points()); n != 500 {
			t.Errorf("%d: %d points", length, n)
		}
	}
}

// A point has a part of the time.
func TestPointsEndWithTheTime(t *testing.T) {
	for until, want := range map[time.Duration]int{0: 0, time.Second: 1, 5 * time.Second: 5, 5*time.Second + 1: 6} {
		s := newSeries(newTally(nil), 500*time.Second)
		if s.Advance(until); len(s.Points()) != want {
			t.Errorf("%s: %d points, want %d", until, len(s.Points()), want)
		}
	}
}

// Pods that wait for no time do not count.
func TestMostWaitingPods(t *testing.T) {
	tally := newTally(nil)
	s := newSeries(tally, time.Minute)
	for _, step := range []struct {
		waiting int
		until   time.Duration
	}{{9, 0}, {2, time.Second}, {3, 2 * time.Second}, {8, 2 * time.Second}, {7, time.Second}, {1, time.Minute}} {
		tally.Waiting = step.waiting
		s.Advance(step.until)
	}
	if got := s.Outcome(nil).MostWaiting; got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

func TestNodesThatAreNotKnownHaveNoFigures(t *testing.T) {
	tally := newTally(nil)
	for i := range 20 {
		tally.AddPod(fmt.Sprintf("unknown-%d", i), report.Amounts{"gpu": 1}, false)
	}
	one := node("n", "2")
	one.Status.Allocatable = corev1.ResourceList{"gpu": resource.MustParse("1")}
	tally.SetNode(one)
	tally.AddPod("n", report.Amounts{"gpu": 1}, false)
	want := Values{Nodes: 1, Running: 21, Utilization: map[string]float64{"gpu": 21}}
	for range 5 {
		if diff := cmp.Diff(want, tally.Values()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestTallyOfNodesAndPods(t *testing.T) {
	tally := newTally([]report.Price{{Label: corev1.LabelInstanceTypeStable, Value: "m5", Price: 2}})
	tally.AddPod("late", report.Amounts{"cpu": 1000, "gpu": 1}, false) // its node is not known yet
	tally.AddPod("", report.Amounts{"cpu": 500}, false)
	tally.RemoveNode("none")
	unpriced := node("late", "2")
	unpriced.Labels = nil
	unpriced.Status.Allocatable["disk"] = resource.MustParse("0")
	values := func(v Values, utilization map[string]float64) Values {
		v.Utilization = utilization
		return v
	}
	for _, step := range []struct {
		do   func()
		want Values
	}{
		{func() {}, values(Values{Running: 2}, map[string]float64{})},
		{func() { tally.SetNode(unpriced) },
			values(Values{Nodes: 1, Running: 2}, map[string]float64{"cpu": 0.75})},
		{func() { tally.SetNode(node("late", "4")) },
			values(Values{Nodes: 1, Running: 2, Cost: 2}, map[string]float64{"cpu": 0.375})},
		{func() { tally.RemoveNode("late") }, values(Values{Running: 2}, map[string]float64{})},
		{func() { tally.RemoveNode("late") }, values(Values{Running: 2}, map[string]float64{})},
		{func() { tally.RemovePod("late", report.Amounts{"cpu": 1000, "gpu": 1}, false) },
			values(Values{Running: 1}, map[string]float64{})},
		{func() { tally.SetNode(node("late", "1")) },
			values(Values{Nodes: 1, Running: 1, Cost: 2, EmptyCost: 2}, map[string]float64{"cpu": 0.5})},
	} {
		step.do()
		if diff := cmp.Diff(step.want, tally.Values()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestQuantilesOfWaitingTimes(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(199-i)*time.Second)
	}
	want := Waiting{Mean: 99.5, P50: 100, P90: 180, P99: 198, Max: 199}
	if diff := cmp.Diff(want, newWaiting(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	short := []time.Duration{1234567, 2345678}
	want = Waiting{Mean: 0.002, P50: 0.002, P90: 0.002, P99: 0.002, Max: 0.002}
	if diff := cmp.Diff(want, newWaiting(short)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := newWaiting(nil); got != (Waiting{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestFiguresOfAReplay(t *testing.T) {
	outcome := func(factor float64) Outcome {
		n := int(factor)
		return Outcome{Arrived: n, Placed: 2 * n, Ended: 3 * n, Evicted: 4 * n, MostWaiting: 5 * n,
			Waiting: Waiting{Mean: factor, P50: 2 * factor, P90: 60.04 * factor, P99: 3600 * factor, Max: 0.06 * factor},
			Mean: Values{Cost: 0.5 * factor, EmptyCost: 0.25 * factor,
				Utilization: map[string]float64{"memory": 0.1 * factor, "cpu": 0.2 * factor, "a": 0.0004 * factor}}}
	}
	r := &Result{Replayed: outcome(1), Recorded: outcome(2)}
	want := []Figure{
		{"Pods arrived", "1", "2"}, {"Pods placed", "2", "4"}, {"Pods ended", "3", "6"}, {"Pods evicted", "4", "8"},
		{"Most pods waiting at a time", "5", "10"}, {"Mean wait", "1s", "2s"}, {"Wait, p50", "2s", "4s"},
		{"Wait, p90", "1m0s", "2m0.1s"}, {"Wait, p99", "1h0m0s", "2h0m0s"}, {"Longest wait", "100ms", "100ms"},
		{"Mean utilization of cpu", "20.0 %", "40.0 %"}, {"Mean utilization of memory", "10.0 %", "20.0 %"},
		{"Mean utilization of a", "0.0 %", "0.1 %"},
		{"Mean cost of nodes", "0.5", "1"}, {"Mean cost of empty nodes", "0.25", "0.5"},
	}
	if diff := cmp.Diff(want, r.Figures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Replayed.Mean.Cost = 0
	if diff := cmp.Diff(want[:13], r.Figures()); diff != "" {
		t.Errorf("without prices (-want +got):\n%s", diff)
	}
}

func TestListsOfAResultAreOrdered(t *testing.T) {
	var r Result
	r.Sort()
	if r.Evicted == nil || r.Lost == nil || r.Unplaced == nil || r.Differences == nil {
		t.Errorf("a list is nil: %+v", r)
	}
	evicted := func(list ...string) (all []Evicted) {
		for _, name := range list { // SECONDS NAMESPACE NAME
			all = append(all, Evicted{Seconds: float64(name[0]),
				Placement: report.Placement{Namespace: name[1:2], Name: name[2:]}})
		}
		return all
	}
	r.Evicted, r.Lost = evicted("2ax", "1bx", "1ay", "1ax"), evicted("2ax", "1bx", "1ay", "1ax")
	for _, name := range []string{"bx", "ay", "ax"} {
		r.Unplaced = append(r.Unplaced, Unplaced{Unplaced: report.Unplaced{Namespace: name[:1], Name: name[1:]}})
		r.Differences = append(r.Differences, Difference{Namespace: name[:1], Name: name[1:]})
	}
	r.Sort()
	want := Result{Evicted: evicted("1ax", "1ay", "1bx", "2ax"), Lost: evicted("1ax", "1ay", "1bx", "2ax")}
	for _, name := range []string{"ax", "ay", "bx"} {
		want.Unplaced = append(want.Unplaced, Unplaced{Unplaced: report.Unplaced{Namespace: name[:1], Name: name[1:]}})
		want.Differences = append(want.Differences, Difference{Namespace: name[:1], Name: name[1:]})
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
