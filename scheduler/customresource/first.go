package customresource

import (
	"context"
	"sync"
	"time"
)

// firstWait is the maximum wait in First.Wait. It exceeds the longest backoff between two requests
// to an API server that has just started.
const firstWait = time.Minute

// First is done when a plugin has the first objects, or when the API server has answered that it
// returns none: the resource does not exist, or the scheduler has no permission to read it. A
// plugin that must not decide before sets Options.First and calls Wait in PreFilter. Create it with
// NewFirst.
type First struct {
	wait time.Duration
	once sync.Once
	done chan struct{}
}

// NewFirst returns a First.
func NewFirst() *First { return &First{wait: firstWait, done: make(chan struct{})} }

// Wait waits until the plugin has the first objects, at most a minute, or until ctx is done. When
// the minute is over, later calls return immediately. It reports whether the plugin has the objects
// or does not get any. A nil First is done.
func (f *First) Wait(ctx context.Context) bool {
	if f == nil {
		return true
	}
	select {
	case <-f.done:
		return true
	default:
	}
	timer := time.NewTimer(f.wait)
	defer timer.Stop()
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
	case <-timer.C:
		f.finish()
	}
	return false
}

func (f *First) finish() {
	if f != nil {
		f.once.Do(func() { close(f.done) })
	}
}
