package page_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/tune"
	"github.com/pmk-sched/pmk-sched/profiles"
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

func TestNamesOfATuningAreEscaped(t *testing.T) {
	const bad = `"'></td></text></title><script>alert(1)</script><!--`
	good, text := writeTuning(t, tuning(strings.Repeat("n", len(bad)))), writeTuning(t, tuning(bad))
	if a, b := tags(good), tags(text); strings.Join(a, "") != strings.Join(b, "") {
		t.Error("names change the elements of the page")
	}
}
