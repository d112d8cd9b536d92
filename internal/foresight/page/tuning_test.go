package page_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func tuning(name string) *tune.Result {
	objectives := tune.Objectives()[:3]
	return &tune.Result{
		Release: "v1.24.3", Scheduler: name, Scenario: name, Seed: 1, Snapshots: []string{name}, HeldOut: []string{name},
		Objectives: objectives, Notes: []string{name}, Unknown: []string{name},
		Points: []tune.Point{
			{Name: name, From: name, Front: true, Figures: tune.Figures{5, 0.25, 1}, HeldOut: tune.Figures{4, 0.5, 1},
				Changes: []string{name}, Configuration: name, Spec: name, EKS: profiles.Managed{Text: name, Lost: []string{name}},
				AKS: profiles.Managed{Text: name, Lost: []string{name}}},
			{Name: tune.Today, Figures: tune.Figures{1, 0.25, 2}},
		},
		Choices: []tune.Choice{{Objective: name, Point: name, Preset: name}},
		Trials: []tune.Trial{
			{Candidate: tune.Candidate{Name: tune.Today}, Figures: tune.Figures{1, 0.25, 2}},
			{Candidate: tune.Candidate{Name: name}, Figures: tune.Figures{5, 0.25, 1}},
			{Candidate: tune.Candidate{Name: "failed"}, Error: name},
		},
	}
}

func writeTuning(t *testing.T, r *tune.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.WriteTuning(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Each pair of objectives has a picture, with each trial, each point and today's configuration.
func TestTuningHasAPictureOfEachPairOfObjectives(t *testing.T) {
	text := writeTuning(t, tuning("trial 1"))
	for part, want := range map[string]int{"<figure>": 3, `class="today" cx="0.0"`: 2, `class="front" cx=`: 4,
		`class="other" cx=`: 7, "NaN": 0, "<td>no</td>": 3} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%d times %s, want %d:\n%s", got, part, want, text)
		}
	}
	if found := regexp.MustCompile(`(?i)https?:|<link[^>]*stylesheet|\ssrc=|@import|url\(`).FindString(text); found != "" {
		t.Errorf("the page has %q", found)
	}
}

func TestTuningPage(t *testing.T) {
	trial := func(name string, figures ...float64) tune.Trial {
		return tune.Trial{Candidate: tune.Candidate{Name: name}, Figures: figures}
	}
	r := &tune.Result{
		Release: "v1.24.3", Scheduler: "packer", Scenario: "replace-all", Seed: 7, Snapshots: []string{"a", "b"},
		HeldOut: []string{"c"}, Objectives: tune.Objectives()[:3], Notes: []string{"a note"}, Unknown: []string{"the future"},
		Trials: []tune.Trial{trial(tune.Today, 2, 0.5, 1), trial("preset a", 1, 0.75, 2), trial("failed"),
			trial("trial 4", 6, 0.25, 2), trial("trial 5", 4, 0.3, 1)},
		Points: []tune.Point{
			{Name: "trial 4", From: tune.Today, Front: true, Figures: tune.Figures{6, 0.25, 2}, HeldOut: tune.Figures{5, 0.5, 2},
				HeldOutFront: true, Changes: []string{"weight of A 1 → 2"}, Configuration: "kind: A", Spec: "kind: B",
				EKS: profiles.Managed{Text: "{}", Lost: []string{"weight 2 of A"}}, AKS: profiles.Managed{Text: "a: 1"}},
			{Name: tune.Today, Figures: tune.Figures{2, 0.5, 1}, HeldOut: tune.Figures{1, 0.5, 3}},
			{Name: "preset a", Figures: tune.Figures{1, 0.75, 2}},
		},
		Choices: []tune.Choice{
			{Objective: "empty-nodes", Point: "trial 4", Figure: 5, Preset: "preset a", PresetFigure: 1, NoWorse: true},
			{Objective: "spread", Point: "trial 4", Figure: 0.5, Preset: "preset a", PresetFigure: 0.4, WithinError: true},
		},
	}
	golden.Equal(t, "testdata/tuning.html", writeTuning(t, r))
}

// One objective has no other one to compare with, and a single value is in the middle.
func TestTuningOfFewFiguresHasAPage(t *testing.T) {
	r := tuning("trial 1")
	r.Objectives = r.Objectives[:1]
	if text := writeTuning(t, r); strings.Contains(text, "<figure>") {
		t.Error("one objective has a picture")
	}
	r = tuning("trial 1")
	r.Objectives, r.Trials, r.Points = r.Objectives[:2], r.Trials[:1], r.Points[1:]
	if text := writeTuning(t, r); strings.Count(text, `cx="210.0" cy="130.0"`) != 3 {
		t.Errorf("not in the middle:\n%s", text)
	}
}

func TestNamesOfATuningAreEscaped(t *testing.T) {
	const bad = `"'></td></text></title><script>alert(1)</script><!--`
	good, text := writeTuning(t, tuning(strings.Repeat("n", len(bad)))), writeTuning(t, tuning(bad))
	if a, b := tags(good), tags(text); strings.Join(a, "") != strings.Join(b, "") {
		t.Error("names change the elements of the page")
	}
}
