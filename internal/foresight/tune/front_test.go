package tune

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFront(t *testing.T) {
	all := []Figures{{1, 1}, nil, {2, 2}, {2, 1}, {1, 1}, {3, 2}}
	if diff := cmp.Diff([]int{0, 2}, front(twoObjectives(), all)); diff != "" {
		t.Error(diff)
	}
}

func TestDominates(t *testing.T) {
	for _, tc := range []struct {
		a, b Figures
		want bool
	}{
		{Figures{1, 3}, Figures{2, 2}, true}, {Figures{1, 2}, Figures{2, 2}, true}, {Figures{2, 3}, Figures{2, 2}, true},
		{Figures{2, 2}, Figures{2, 2}, false}, {Figures{1, 1}, Figures{2, 2}, false}, {Figures{3, 3}, Figures{2, 2}, false},
	} {
		if got := dominates(twoObjectives(), tc.a, tc.b); got != tc.want {
			t.Errorf("%v dominates %v: %t", tc.a, tc.b, got)
		}
	}
}

func TestTheLeastCrowdedPointsComeFirst(t *testing.T) {
	for _, tc := range []struct {
		name  string
		all   []Figures
		front []int
		want  []int
	}{
		{"two", []Figures{{1, 1}, {0, 9}, {2, 2}}, []int{2, 0}, []int{0, 2}},
		// The inner ones have 0.2, 0.2, 0.3 and 0.7 of the scale between their neighbors.
		{"between the ends", []Figures{{0, 0}, {10, 10}, {2, 2}, {1, 1}, {5, 5}, {3, 3}}, []int{0, 1, 2, 3, 4, 5},
			[]int{0, 1, 4, 5, 2, 3}},
		{"both figures count", []Figures{{0, 40}, {10, 0}, {1, 10}, {6, 9}, {8, 8}}, []int{0, 1, 2, 3, 4},
			[]int{0, 1, 2, 3, 4}},
		{"an equal figure", []Figures{{7, 3}, {7, 0}, {7, 1}, {7, 2}}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{"a scale of one", []Figures{{0, 0}, {1, 1}, {0.5, 0.5}, {0.25, 0.25}}, []int{3, 2, 1, 0}, []int{0, 1, 2, 3}},
	} {
		if diff := cmp.Diff(tc.want, crowding(twoObjectives(), tc.all, tc.front)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestPointsAreTheFrontAndTheGivenCandidates(t *testing.T) {
	trial := func(name, from string, figures ...float64) Trial {
		return Trial{Candidate: Candidate{Name: name, From: from}, Figures: figures}
	}
	trials := []Trial{trial(Today, "", 5, 5), trial("preset a", "", 6, 5), trial("preset b", ""),
		trial("trial 4", Today, 4, 1), trial("trial 5", "trial 4", 2, 0), trial("trial 6", Today, 6, 1)}
	want := []Point{
		{Name: "trial 5", From: "trial 4", Front: true, Figures: Figures{2, 0}},
		{Name: "trial 4", From: Today, Front: true, Figures: Figures{4, 1}},
		{Name: Today, Front: true, Figures: Figures{5, 5}}, {Name: "preset a", Figures: Figures{6, 5}},
	}
	if diff := cmp.Diff(want, newPoints(twoObjectives(), trials, 3)); diff != "" {
		t.Error(diff)
	}
}

// A point that failed on the snapshots held out is not on their front, and beats nothing.
func TestTheFrontOfTheSnapshotsHeldOutIsMarked(t *testing.T) {
	points := []Point{{Name: "best", HeldOut: Figures{1, 2}}, {Name: "beaten", HeldOut: Figures{2, 2}, HeldOutFront: true},
		{Name: "failed", HeldOutFront: true}, {Name: "other", HeldOut: Figures{3, 3}}}
	markHeldOut(twoObjectives(), points)
	var got []string
	for _, p := range points {
		if p.HeldOutFront {
			got = append(got, p.Name)
		}
	}
	if diff := cmp.Diff([]string{"best", "other"}, got); diff != "" {
		t.Error(diff)
	}
}
