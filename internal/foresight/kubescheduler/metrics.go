package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
)

const (
	// PollInterval is the interval at which the scheduler's metrics are read, and firstPoll the
	// interval before the second time: each following interval is twice as long.
	PollInterval = 500 * time.Millisecond
	firstPoll    = 50 * time.Millisecond
	// StablePolls is the number of consecutive polls in which the scheduler must have nothing to do. A
	// pod that evicts others waits for them in the meantime: that takes less than a second, since no
	// kubelet has to stop them.
	StablePolls = 5
	// cacheTime is the time limit for the scheduler to read the objects.
	cacheTime = 5 * time.Minute
)

// Ended returns an error with the end of the scheduler's log if it has ended.
func (p *Process) Ended() error {
	select {
	case <-p.Done():
		return fmt.Errorf("the scheduler ended: %s", p.Tail())
	default:
		return nil
	}
}

// AwaitCache waits until the scheduler knows the nodes and the pods on them. A scheduler before
// 1.28 starts to schedule earlier.
func (p *Process) AwaitCache(ctx context.Context, nodes, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, cacheTime)
	defer cancel()
	var m counters
	err := p.poll(ctx, func(read counters) bool {
		m = read
		return m.cachedNodes >= nodes && m.cachedPods >= pods
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("wait until the scheduler has read all objects: it has %d of %d nodes and %d of %d pods: %w",
			m.cachedNodes, nodes, m.cachedPods, pods, err)
	}
	return err
}

// AwaitNodes waits until done returns true for the number of nodes that the scheduler knows.
func (p *Process) AwaitNodes(ctx context.Context, done func(known int) bool) error {
	return p.poll(ctx, func(read counters) bool { return done(read.cachedNodes) })
}

// cacheSize returns the cache metric's name.
func (p *Process) cacheSize() string { return p.Release.Rules().Metrics.CacheSize }

// poll reads the metrics until done returns true.
func (p *Process) poll(ctx context.Context, done func(counters) bool) error {
	for interval := firstPoll; ; interval = min(2*interval, PollInterval) {
		if err := p.Ended(); err != nil {
			return err
		}
		// It does not serve them yet, or is busy.
		if text, err := p.Metrics(ctx); err == nil && done(parseMetrics(text, p.cacheSize())) {
			return nil
		}
		if err := clock.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// IsIdle reports whether the scheduler has no pod to try.
func (p *Process) IsIdle(ctx context.Context) bool {
	text, err := p.Metrics(ctx)
	return err == nil && parseMetrics(text, p.cacheSize()).active == 0
}

// Metrics reads the scheduler's metrics, in Prometheus' text format.
func (p *Process) Metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.MetricsURL, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read metrics of the scheduler: %s", response.Status)
	}
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// counters are the scheduler's metrics.
type counters struct {
	cachedNodes, cachedPods int
	// active is the number of pods that it will try, refused the number of pods without a fitting node
	// or with scheduling gates.
	active, refused int
	// attempts counts the ended attempts to schedule a pod. scheduled is the number that have bound
	// it, and errors the number that have failed for a reason other than that no node fits.
	attempts, scheduled, errors int
}

// parseMetrics reads metrics in Prometheus' text format. cacheSize is the cache metric's name in
// the release.
func parseMetrics(text, cacheSize string) counters {
	m := metrics.Parse(text)
	cache, pending := m.SumBy(cacheSize, "type"), m.SumBy("scheduler_pending_pods", "queue")
	active := pending["active"] + pending["backoff"]
	attempts := m.SumBy("scheduler_schedule_attempts_total", "result")
	return counters{
		cachedNodes: int(cache["nodes"]), cachedPods: int(cache["pods"]),
		active: int(active), refused: int(m.Sum("scheduler_pending_pods") - active),
		attempts: int(m.Sum("scheduler_schedule_attempts_total")), scheduled: int(attempts["scheduled"]),
		errors: int(attempts["error"]),
	}
}
