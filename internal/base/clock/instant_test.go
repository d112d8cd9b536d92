package clock

import (
	"testing"
	"time"
)

func TestInstantIsWithinADurationOnBothClocks(t *testing.T) {
	const valid = 15 * time.Second
	start := Now()
	for name, tc := range map[string]struct {
		wall, steady time.Duration
		want         bool
	}{
		"at the same moment":       {0, 0, true},
		"overdue by the wall":      {valid, time.Second, false},
		"overdue by the machine":   {time.Second, valid, false},
		"the last moment":          {valid - 1, valid - 1, true},
		"set back by a moment":     {-1, 0, false},
		"a moment later":           {time.Second, time.Second, true},
		"overdue":                  {valid, valid, false},
		"suspended":                {time.Hour, time.Second, false},
		"set back a little":        {time.Second, 20 * time.Second, false},
		"set back before it":       {-time.Hour, 20 * time.Second, false},
		"set back while suspended": {-time.Hour, time.Second, false},
		"set forward":              {time.Hour, time.Second, false},
	} {
		now := Instant{Wall: start.Wall.Add(tc.wall), Steady: start.Steady.Add(tc.steady)}
		if got := start.Within(valid, now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	// Round removes the reading of the monotonic clock, which == compares and Equal does not.
	now := Now()
	if now.Wall != now.Wall.Round(0) || now.Steady == now.Steady.Round(0) { //nolint:staticcheck // see above
		t.Error("the clocks are mixed up")
	}
}
