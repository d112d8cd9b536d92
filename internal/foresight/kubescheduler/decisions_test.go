package kubescheduler

import (
	"testing"
	"time"
)

func TestDecisionsEnd(t *testing.T) {
	for _, tc := range []struct {
		name  string
		polls []counters
		want  int // the number of polls until the end; 0: it does not come
	}{
		{"all are bound", []counters{{active: 2}, {attempts: 2, scheduled: 2}}, 2},
		{"one is refused", []counters{{refused: 1, attempts: 2, scheduled: 1}, {refused: 1, attempts: 2, scheduled: 1},
			{refused: 1, attempts: 2, scheduled: 1}, {refused: 1, attempts: 2, scheduled: 1},
			{refused: 1, attempts: 2, scheduled: 1}}, 5},
		{"one meets an error each time", []counters{{active: 1, attempts: 2, scheduled: 1, errors: 1},
			{active: 1, attempts: 5, scheduled: 1, errors: 4}, {active: 1, attempts: 6, scheduled: 1, errors: 5}}, 3},
		{"errors before the other pod is bound", []counters{{active: 1, attempts: 5, scheduled: 0, errors: 5},
			{active: 1, attempts: 6, scheduled: 1, errors: 5}, {active: 1, attempts: 8, scheduled: 1, errors: 7}}, 0},
		{"two of them", []counters{{active: 2, attempts: 7, errors: 7}, {active: 2, attempts: 8, errors: 8}}, 2},
	} {
		d, now, got := decisions{pods: 2}, time.Unix(0, 0), 0
		for i, m := range tc.polls {
			if d.ended(m, now) {
				got = i + 1
				break
			}
			now = now.Add(PollInterval)
		}
		if got != tc.want {
			t.Errorf("%s: ended after %d polls, want %d", tc.name, got, tc.want)
		}
	}
}
