package kubescheduler

import (
	"context"
	"errors"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// mostErrors is the number of errors after which a pod counts as decided. The scheduler tries it
// again with a pause of at most 10 seconds, forever: up to 1.29.4 a pod that names a node that does
// not exist (kubernetes#124559).
const mostErrors = 4

// AwaitDecisions waits until the scheduler has bound or refused as many pods, and tries none again.
func (p *Process) AwaitDecisions(ctx context.Context, pods int) error {
	d := decisions{pods: pods}
	var m counters
	err := p.poll(ctx, func(read counters) bool {
		m = read
		return d.ended(m, time.Now())
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return problem.Errorf("allow more with --timeout",
			"wait for the scheduler: it has bound %d of %d pods, and refused %d: %w", m.scheduled, pods, m.refused, err)
	}
	return err
}

// decisions follows a scheduler's decisions about pods.
type decisions struct {
	pods int
	// stable counts the consecutive polls in which the scheduler had nothing to do; the next poll
	// counts from next on.
	stable int
	next   time.Time
	// progress counts the attempts without an error, and errors the error count before the last such
	// attempt.
	progress, errors int
}

// ended reports whether the scheduler has decided about all pods.
func (d *decisions) ended(m counters, now time.Time) bool {
	if progress := m.attempts - m.errors; progress != d.progress {
		d.progress, d.errors = progress, m.errors
	}
	if m.active > 0 && m.scheduled+m.refused+m.active >= d.pods && m.errors-d.errors >= mostErrors*m.active {
		return true
	}
	if m.active > 0 || m.scheduled+m.refused < d.pods {
		d.stable = 0
		return false
	}
	// If each attempt has bound its pod, there is nothing to try again and nothing was evicted.
	if m.attempts == m.scheduled && m.scheduled >= d.pods {
		return true
	}
	if !now.Before(d.next) { // the first polls follow each other faster
		d.stable, d.next = d.stable+1, now.Add(PollInterval)
	}
	return d.stable >= StablePolls
}
