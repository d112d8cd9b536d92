package apply

import (
	"testing"
	"time"
)

// With a short stability window the minimum number of observations does not take longer than the
// window.
func TestObservationsFitIntoAShortStabilityWindow(t *testing.T) {
	for stableFor, want := range map[time.Duration]time.Duration{
		0: time.Second, 25 * time.Second: time.Second, time.Second: 200 * time.Millisecond,
	} {
		if got := (WaitOptions{StableFor: stableFor}).withDefaults().Interval; got != want {
			t.Errorf("stable for %s: an observation every %s, want every %s", stableFor, got, want)
		}
	}
}
