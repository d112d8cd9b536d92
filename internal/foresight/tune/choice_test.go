package tune

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tried returns a trial with its figures for the objective "less" on each snapshot.
func tried(name string, figures ...float64) Trial {
	t := Trial{Candidate: Candidate{Name: name}}
	for _, f := range figures {
		t.BySnapshot = append(t.BySnapshot, Figures{f})
	}
	if len(figures) > 0 {
		t.Figures = mean(t.BySnapshot)
	}
	return t
}

func TestChoiceIsAGivenOneUnlessATrialIsClearlyBetter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		trials []Trial
		want   string
	}{
		{"better on each snapshot", []Trial{tried(Today, 5, 6), tried("preset a", 4, 5), tried("trial 3", 3, 4)}, "trial 3"},
		{"better on one of two", []Trial{tried(Today, 5, 6), tried("preset a", 4, 5), tried("trial 3", 1, 6)}, "preset a"},
		{"better on the only one", []Trial{tried(Today, 5), tried("preset a", 4), tried("trial 3", 3)}, "trial 3"},
		{"better by less than a standard error of a sample", []Trial{
			tried(Today, 20, 20), tried("preset a", 10, 10), tried("trial 3", 3.5, 10.5)}, "preset a"},
		{"better by exactly a standard error", []Trial{
			tried(Today, 20, 20), tried("preset a", 10, 10), tried("trial 3", 2, 10)}, "preset a"},
		{"better by different amounts of more than a standard error", []Trial{
			tried(Today, 20, 20), tried("preset a", 10, 10), tried("trial 3", 6, 2)}, "trial 3"},
		{"the best of two that are clearly better", []Trial{
			tried(Today, 9, 9), tried("preset a", 8, 8), tried("trial 3", 2, 2), tried("trial 4", 1, 1)}, "trial 4"},
		{"better than the first given one, which is the best of them", []Trial{
			tried(Today, 4, 5), tried("preset a", 5, 6), tried("trial 3", 3, 4)}, "trial 3"},
		{"better on three snapshots by more than a standard error", []Trial{
			tried(Today, 9, 9, 9), tried("preset a", 8, 8, 8), tried("trial 3", 5, 5, 8)}, "trial 3"},
		{"a given one after a better one", []Trial{tried(Today, 4, 4), tried("preset a", 5, 5)}, Today},
		{"equal", []Trial{tried(Today, 4, 4), tried("preset a", 4, 4), tried("trial 3", 4, 4)}, Today},
		{"failed", []Trial{tried(Today), tried("preset a", 4, 4), tried("trial 3")}, "preset a"},
	} {
		if diff := cmp.Diff([]string{tc.want}, choose(twoObjectives()[:1], tc.trials, 2)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// Without a given candidate that succeeds, nothing is known that another one could surpass.
func TestThereIsNoChoiceIfAllGivenCandidatesFail(t *testing.T) {
	trials := []Trial{tried(Today), tried("preset a"), tried("trial 3", 1, 1)}
	if got := choose(twoObjectives()[:1], trials, 2); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestVerdict(t *testing.T) {
	got := []string{Choice{NoWorse: true}.Verdict(), Choice{WithinError: true}.Verdict(), Choice{}.Verdict()}
	if diff := cmp.Diff([]string{"yes", "within error", "no"}, got); diff != "" {
		t.Error(diff)
	}
}

// A choice that is the best one on the snapshots of the search can be worse on those held out.
func TestChoicesAreComparedOnTheSnapshotsHeldOut(t *testing.T) {
	held := func(p Point, bySnapshot ...Figures) Point {
		p.HeldOut, p.HeldOutBySnapshot = mean(bySnapshot), bySnapshot
		return p
	}
	points := []Point{
		held(Point{Name: "trial 9", Front: true, Figures: Figures{1, 9}}, Figures{2, 8}, Figures{4, 8}),
		held(Point{Name: "trial 10", Front: true, Figures: Figures{0, 0}}, Figures{0, 0}, Figures{0, 0}),
		held(Point{Name: Preset + "default", Figures: Figures{2, 7}}, Figures{1, 7}, Figures{3, 7}),
		{Name: Preset + "failed", Figures: Figures{2, 7}},
	}
	want := []Choice{
		{"less", "trial 9", 3, "preset default", 2, false, false}, {"more", "trial 9", 8, "preset default", 7, true, false},
	}
	if diff := cmp.Diff(want, compareChoices(twoObjectives(), points, []string{"trial 9", "trial 9"})); diff != "" {
		t.Error(diff)
	}
	// The preset is better on one snapshot, and worse on the other.
	points[2] = held(points[2], Figures{4, 7}, Figures{1, 7})
	want[0].PresetFigure, want[0].WithinError = 2.5, true
	if diff := cmp.Diff(want, compareChoices(twoObjectives(), points, []string{"trial 9", "trial 9"})); diff != "" {
		t.Error(diff)
	}
	// One value has no standard error.
	points = []Point{{Name: "trial 9", Figures: Figures{3, 9}}, {Name: Preset + "default", Figures: Figures{2, 7}}}
	want = []Choice{{"less", "trial 9", 3, "preset default", 2, false, false}}
	if diff := cmp.Diff(want, compareChoices(twoObjectives(), points, []string{"trial 9"})); diff != "" {
		t.Errorf("without snapshots held out: %s", diff)
	}
	// A difference of rounding is none, and the best one of several presets counts.
	points = []Point{
		{Name: "trial 9", Figures: Figures{2 + 5e-10, 9}}, {Name: Preset + "default", Figures: Figures{3, 7}},
		{Name: Preset + "dense", Figures: Figures{2, 8}}, {Name: Today, Figures: Figures{1, 10}},
	}
	want = []Choice{{"less", "trial 9", 2 + 5e-10, "preset dense", 2, true, false}}
	if diff := cmp.Diff(want, compareChoices(twoObjectives(), points, []string{"trial 9", "no point"})); diff != "" {
		t.Errorf("presets that are hardly better: %s", diff)
	}
	want = []Choice{{"more", "trial 9", 9, "preset dense", 8, true, false}}
	if diff := cmp.Diff(want, compareChoices(twoObjectives(), points, []string{"no point", "trial 9"})); diff != "" {
		t.Errorf("the first objective has no point: %s", diff)
	}
	if got := compareChoices(twoObjectives(), points, []string{}); got == nil || len(got) != 0 {
		t.Errorf("without choices: %v", got)
	}
	if got := compareChoices(twoObjectives(), points[:1], []string{"trial 9"}); len(got) != 0 {
		t.Errorf("without presets: %v", got)
	}
}
