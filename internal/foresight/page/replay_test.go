package page_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func replayed(name string) *replay.Result {
	values := replay.Values{Nodes: 2, Running: 3, Waiting: 1, Cost: 4,
		Utilization: map[string]float64{name: 0.5, "cpu": 0.25}}
	outcome := replay.Outcome{Mean: values, Points: []replay.Point{{Values: values}, {Seconds: 30, Values: values}}}
	return &replay.Result{
		Release: "v1.24.3", Scheduler: name, Seconds: 60, StepSeconds: 1, Replayed: outcome, Recorded: outcome,
		Evicted:  []replay.Evicted{{Seconds: 30, Placement: report.Placement{Namespace: name, Name: name, Node: name}}},
		Unplaced: []replay.Unplaced{{Unplaced: report.Unplaced{Namespace: name, Name: name, Reason: name}}},
		Notes:    []string{name}, Unknown: []string{name},
	}
}

func writeReplay(t *testing.T, r *replay.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.WriteReplay(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Each figure has a picture with the replay and the recording, and an eviction a mark.
func TestAReplayHasPicturesOverTime(t *testing.T) {
	text := writeReplay(t, replayed("gpu"))
	for part, want := range map[string]int{
		"<figure>": 7, `<polyline class="replayed" points="0.0,`: 7, `<polyline class="recorded" points="0.0,`: 7,
		`<line class="evicted" x1="360.0"`: 1, "NaN": 0, "Utilization: gpu": 2, "50.0 %": 2, "<details": 2,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%d times %s, want %d:\n%s", got, part, want, text)
		}
	}
	if found := regexp.MustCompile(`(?i)https?:|<link[^>]*stylesheet|\ssrc=|@import|url\(`).FindString(text); found != "" {
		t.Errorf("the page has %q", found)
	}
}

func TestAReplayOfNothingIsAPage(t *testing.T) {
	if text := writeReplay(t, &replay.Result{}); strings.Contains(text, "NaN") || !strings.Contains(text, "</html>") {
		t.Errorf("got %s", text)
	}
}

func TestNamesOfAReplayAreEscaped(t *testing.T) {
	const bad = `"'></td></text></title><script>alert(1)</script><!--`
	good, text := writeReplay(t, replayed(strings.Repeat("n", len(bad)))), writeReplay(t, replayed(bad))
	if a, b := tags(good), tags(text); strings.Join(a, "") != strings.Join(b, "") {
		t.Error("names change the elements of the page")
	}
}
