package clock

import "time"

// Instant is a point in time on both clocks of this machine.
type Instant struct {
	// Wall is the time of day, which can be set back or forward.
	Wall time.Time
	// Steady is the time on the monotonic clock, which cannot be set, and which stops while the
	// machine is suspended.
	Steady time.Time
}

// Now returns the current time.
func Now() Instant {
	now := time.Now()
	return Instant{Wall: now.Round(0), Steady: now} // Round(0) removes the monotonic clock
}

// Within reports whether less than d has passed between i and now on both clocks. It is false if
// the time of day was set back before i.
func (i Instant) Within(d time.Duration, now Instant) bool {
	wall := now.Wall.Sub(i.Wall)
	return wall >= 0 && wall < d && now.Steady.Sub(i.Steady) < d
}
