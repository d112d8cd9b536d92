// Package clock has a sleep that ends with its context, and time on both clocks of the machine.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d. It returns the context's error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
