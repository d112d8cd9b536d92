package apply

import (
	"context"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

// A lock that was not renewed for longer than it is valid is confirmed with the API server before
// the next change, also if the time of day was set back since.
func TestOverdueLockIsConfirmedAfterTheClockWasSetBack(t *testing.T) {
	client, err := New(restConfig(), Options{LockDuration: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	l := &lock{client: client, name: "x"}
	client.held.Store(l, nil)
	renewed := func(wall, steady time.Duration) {
		now := clock.Now()
		l.renewed.Store(&clock.Instant{Wall: now.Wall.Add(-wall), Steady: now.Steady.Add(-steady)})
	}
	renewed(time.Second, time.Second)
	if err := client.confirmLocks(context.Background()); err != nil {
		t.Errorf("a fresh lock: %v", err)
	}
	renewed(-time.Hour, time.Minute)
	if err := client.confirmLocks(context.Background()); err == nil {
		t.Error("an overdue lock was not confirmed")
	}
}
