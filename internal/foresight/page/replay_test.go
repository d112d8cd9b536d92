package page_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/page"
	"github.com/pmk-sched/pmk-sched/internal/foresight/replay"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/golden"
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

// moment returns figures of which each differs.
func moment(nodes float64) replay.Values {
	return replay.Values{Nodes: nodes, Running: 3 * nodes, Waiting: nodes - 0.75, Cost: nodes / 2, EmptyCost: nodes / 4,
		Utilization: map[string]float64{"cpu": nodes / 8, "memory": nodes / 2}}
}

func TestReplayPage(t *testing.T) {
	placed := func(name, node, by string) report.Placement {
		return report.Placement{Namespace: "shop", Name: name, Node: node, By: by}
	}
	r := &replay.Result{
		Release: "v1.24.3", Scheduler: "packer", Seconds: 100, StepSeconds: 2, Groups: 7, SameNode: 3, OtherNode: 1,
		Replayed: replay.Outcome{Arrived: 4, Placed: 5, Ended: 1, Evicted: 2, MostWaiting: 3, Mean: moment(2),
			Waiting: replay.Waiting{Mean: 1, P50: 2, P90: 3, P99: 4, Max: 5},
			Points: []replay.Point{{Values: moment(1)}, {Seconds: 50, Values: moment(3)},
				{Seconds: 100, Values: moment(2)}}},
		Recorded: replay.Outcome{Mean: moment(3),
			Points: []replay.Point{{Values: moment(4)}, {Seconds: 90, Values: moment(1)}}},
		Evicted: []replay.Evicted{{Seconds: 25, Placement: placed("low", "a", "shop/high")},
			{Seconds: 100, Placement: placed("lower", "b", "")}},
		Lost: []replay.Evicted{{Seconds: 70, Placement: placed("gone", "c", "")}},
		Unplaced: []replay.Unplaced{{Since: 5,
			Unplaced: report.Unplaced{Namespace: "shop", Name: "large", Reason: "too large"}}},
		Differences: []replay.Difference{{Namespace: "shop", Name: "web", Recorded: "a", Node: "b"}},
		Notes:       []string{"a note"}, Unknown: []string{"the future"},
	}
	golden.Equal(t, "testdata/replay.html", writeReplay(t, r))
}

// A picture has as many marks as the list has rows.
func TestAReplayWithManyEvictionsHasAPageOfSomeOfThem(t *testing.T) {
	r := replayed("gpu")
	for len(r.Evicted) < 1001 {
		r.Evicted = append(r.Evicted, r.Evicted[0])
	}
	text := writeReplay(t, r)
	if marks := strings.Count(text, `<line class="evicted"`); marks != 1000 || !strings.Contains(text, ">1 more<") {
		t.Errorf("%d marks", marks)
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
