package upgrades

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// run is the result of a simulation; a pod without a node is unplaced.
func run(nodes map[string]string) *report.Report {
	r := &report.Report{}
	for name, node := range nodes {
		if node == "" {
			r.Unplaced = append(r.Unplaced, report.Unplaced{Namespace: "n", Name: name, Reason: "too large"})
			continue
		}
		r.Placements = append(r.Placements, report.Placement{Namespace: "n", Name: name, Node: node})
	}
	r.Finish()
	return r
}

func TestPlacementsDifferWithoutTies(t *testing.T) {
	from := []*report.Report{
		run(map[string]string{"same": "a", "tied": "a", "moved": "a", "refused": "a", "fits": "", "varies": "a"}),
		run(map[string]string{"same": "a", "tied": "b", "moved": "a", "refused": "b", "fits": "", "varies": "b"}),
	}
	to := []*report.Report{
		run(map[string]string{"same": "a", "tied": "c", "moved": "b", "refused": "", "fits": "c", "varies": "c"}),
		run(map[string]string{"same": "a", "tied": "c", "moved": "b", "refused": "", "fits": "a", "varies": ""}),
	}
	from[0].Unplaced[0].Reason, to[0].Unplaced[0].Reason = "first run", "first new run"
	got := comparePlacements(from, to)
	want := &Placements{Runs: 2, NewRuns: 2, Pods: 6, Same: 1, Ties: 2, Placed: 5, NewPlaced: 5,
		Differences: []Difference{
			{Namespace: "n", Name: "fits", Kind: NewlyFits, NewNode: "c", Reason: "first run"},
			{Namespace: "n", Name: "moved", Kind: Moves, Node: "a", NewNode: "b"},
			{Namespace: "n", Name: "refused", Kind: FitsNoMore, Node: "a", Reason: "first new run"},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A scheduler that breaks ties in an order runs twice, any other one more and more often.
func TestSchedulersRunOnceMore(t *testing.T) {
	for n, want := range []int{1, 2, 3, 4} {
		if got := (Side{}).Next(n); got != want {
			t.Errorf("%d runs after %d", got, n)
		}
		if got := (Side{Ordered: true}).Next(n); got != min(want, 2) {
			t.Errorf("%d runs in an order after %d", got, n)
		}
	}
}

// More pods, and a side without random ties, need more runs of the other.
func TestRunsThatTellTiesFromDifferences(t *testing.T) {
	for _, tc := range []struct {
		pods        int
		from, to    bool // ordered
		runs, other int
	}{
		{1, false, false, 3, 3}, {3, false, false, 4, 4}, {100, false, false, 6, 6}, {1000, false, false, 8, 8},
		{10, false, true, 8, 2}, {10, true, true, 2, 2},
	} {
		p := &Placements{Pods: tc.pods, Differences: make([]Difference, 1)}
		from, to := Side{Ordered: tc.from}, Side{Ordered: tc.to}
		for n := 0; n == 0 || !p.enough(from, to); n++ {
			from.Runs, to.Runs = from.Next(n), to.Next(n)
		}
		if from.Runs != tc.runs || to.Runs != tc.other {
			t.Errorf("%+v: %d and %d runs", tc, from.Runs, to.Runs)
		}
	}
}

// The last pods are those of simulations whose nodes have zones: a, b and c in one, d in another.
func TestPlacementsInZones(t *testing.T) {
	inZones := func(scenario string, nodes map[string]string) *report.Report {
		r := run(nodes)
		r.Scenario = scenario
		var u report.Usage
		for name, zone := range map[string]string{"a": "1", "b": "1", "c": "1", "d": "2", "e": ""} {
			u.AddNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
		}
		r.Measure(&u, &u)
		return r
	}
	from := []*report.Report{
		inZones("drain", map[string]string{"zone": "a", "tied": "a", "node": "a", "none": "a", "new": "", "old": "a"}),
	}
	to := []*report.Report{
		inZones("drain", map[string]string{"zone": "d", "tied": "b", "node": "c", "none": "e", "new": "", "old": ""}),
		inZones("", map[string]string{"zone": "d", "tied": "c", "node": "c", "none": "e", "new": "", "old": ""}),
		inZones("", map[string]string{"zone": "d", "tied": "b", "node": "c", "none": "e", "new": "", "old": ""}),
	}
	to[0].Unplaced[1].Reason = "no room"
	want := &Placements{Scenario: "drain", Runs: 1, NewRuns: 3, Pods: 6, Same: 1, Ties: 1, Placed: 5,
		NewPlaced: 4, Differences: []Difference{
			{Namespace: "n", Name: "node", Kind: Moves, Node: "a", NewNode: "c"},
			{Namespace: "n", Name: "none", Kind: MovesZone, Node: "a", NewNode: "e"},
			{Namespace: "n", Name: "old", Kind: FitsNoMore, Node: "a", Reason: "no room"},
			{Namespace: "n", Name: "zone", Kind: MovesZone, Node: "a", NewNode: "d"},
		}}
	if diff := cmp.Diff(want, comparePlacements(from, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := comparePlacements(from, from); len(got.Differences) > 0 || got.Same != 6 || got.Differences == nil {
		t.Errorf("with itself: %+v", got)
	}
}

// Doubtful is the number of pods times the probability that a tie looks like a difference.
func TestDoubtfulDifferences(t *testing.T) {
	random := func(runs int) Side { return Side{Runs: runs} }
	ordered := func(runs int) Side { return Side{Runs: runs, Ordered: true} }
	for _, tc := range []struct {
		pods, differences int
		from, to          Side
		doubtful          float64
		enough            bool
	}{
		{100, 0, random(1), random(1), 0, true}, {4, 1, random(2), random(3), 0.25, false},
		{1, 1, random(2), random(3), 0.0625, false}, {1, 1, random(3), random(3), 0.03125, true},
		{2, 1, ordered(1), random(6), 0.03125, true}, {4, 1, random(6), ordered(2), 0.0625, false},
		{7, 1, ordered(2), ordered(2), 0, true}, {7, 1, ordered(1), ordered(2), 7, false},
		{7, 1, ordered(2), ordered(1), 7, false}, {7, 1, ordered(3), ordered(2), 0, true},
	} {
		p := &Placements{Pods: tc.pods, Differences: make([]Difference, tc.differences), Doubtful: 9}
		if enough := p.enough(tc.from, tc.to); enough != tc.enough || p.Doubtful != tc.doubtful {
			t.Errorf("%+v: %t, %v", tc, enough, p.Doubtful)
		}
	}
}
