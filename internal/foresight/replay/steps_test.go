package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Events that are close to each other are applied together, with the ends of pods in between; times
// without events are skipped.
func TestStepsGroupEventsAndEnds(t *testing.T) {
	var got []string
	var s *Steps[string]
	s = newSteps(10*time.Second, func(g Group[string]) error {
		got = append(got, fmt.Sprintf("%s ends %v events %v", g.At, g.Ends, g.Events))
		for _, e := range g.Events {
			if name, ok := strings.CutPrefix(e, "run "); ok {
				s.End(g.At+25*time.Second, name)
			}
		}
		return nil
	})
	s.End(4*time.Second, "early")
	for _, e := range []struct {
		at   time.Duration
		text string
	}{{1 * time.Second, "run x"}, {9 * time.Second, "run y"}, {12 * time.Second, "a"}, {time.Hour, "b"}} {
		if err := s.Event(e.at, e.text); err != nil {
			t.Fatal(err)
		}
	}
	s.End(2*time.Hour, "late")
	s.End(3*time.Hour, "after the end")
	if err := s.Finish(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"9s ends [early] events [run x run y]", "12s ends [] events [a]", "34s ends [x y] events []",
		"1h0m0s ends [] events [b]", "2h0m0s ends [late] events []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// A group has the events and ends of less than a step from its first one on.
func TestStepsAtTheirEdges(t *testing.T) {
	const second = time.Second
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		step, end time.Duration
		ends      []time.Duration // named e and their number
		events    []time.Duration // named by their number
		during    map[string]time.Duration
		failAt    int
		want      []string
	}{
		"nothing": {step: second, end: 9 * second},
		"at the beginning": {step: second, events: []time.Duration{0, 0}, ends: []time.Duration{0},
			want: []string{"0s [e0] [0 1]"}},
		"a step of no length": {events: []time.Duration{0, 0, 1, 2}, end: 3,
			want: []string{"0s [] [0 1]", "1ns [] [2]", "2ns [] [3]"}},
		"an event of the next step": {step: 5, end: 20, events: []time.Duration{2, 6, 7, 11, 12},
			want: []string{"6ns [] [0 1]", "11ns [] [2 3]", "12ns [] [4]"}},
		"ends of the next step": {step: 5, end: 20, events: []time.Duration{2}, ends: []time.Duration{6, 7, 11, 12},
			want: []string{"6ns [e0] [0]", "11ns [e1 e2] []", "12ns [e3] []"}},
		"ends alone, in order": {step: 5, end: 20, ends: []time.Duration{9, 3, 7},
			want: []string{"7ns [e1 e2] []", "9ns [e0] []"}},
		"an end before an event": {step: 5, end: 20, events: []time.Duration{9}, ends: []time.Duration{9, 8},
			want: []string{"9ns [e1 e0] [0]"}},
		"the end of the recording": {step: 5, end: 9, ends: []time.Duration{8, 9, 10}, want: []string{"9ns [e0 e1] []"}},
		"after an event at the end": {step: 5, end: 9, events: []time.Duration{9}, ends: []time.Duration{9, 10},
			want: []string{"9ns [e0] [0]"}},
		"an end in the past": {step: 5, end: 30, events: []time.Duration{10, 20}, during: map[string]time.Duration{"0": 4},
			want: []string{"10ns [] [0]", "10ns [d0] []", "20ns [] [1]"}},
		"a failure at an event": {step: 5, end: 30, events: []time.Duration{10, 20, 30}, failAt: 1,
			want: []string{"10ns [] [0]"}},
		"a failure at the end": {step: 5, end: 30, events: []time.Duration{10}, failAt: 1, want: []string{"10ns [] [0]"}},
		"a failure before an end": {step: 5, end: 30, ends: []time.Duration{10, 20}, failAt: 1,
			want: []string{"10ns [e0] []"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var s *Steps[string]
			s = newSteps(tc.step, func(g Group[string]) error {
				got = append(got, fmt.Sprintf("%s %v %v", g.At, g.Ends, g.Events))
				for _, e := range g.Events {
					if at, ok := tc.during[e]; ok {
						s.End(at, "d"+e)
					}
				}
				if len(got) == tc.failAt {
					return broken
				}
				return nil
			})
			for i, at := range tc.ends {
				s.End(at, fmt.Sprint("e", i))
			}
			var err error
			for i, at := range tc.events {
				if err == nil {
					err = s.Event(at, strconv.Itoa(i))
				}
			}
			if err == nil {
				err = s.Finish(tc.end)
			}
			if errors.Is(err, broken) != (tc.failAt > 0) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}
