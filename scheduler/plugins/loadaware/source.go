package loadaware

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// source fetches one metric in a goroutine of its own, so that a slow query holds up no other, and publishes what is fresh. Readers
// take the published readings, which never change; nothing on the scheduling path waits for Prometheus.
type source struct {
	metric     Metric
	index      int
	interval   time.Duration
	staleAfter time.Duration
	query      func(ctx context.Context, promQL string) ([]sample, error)
	nodes      func() ([]*corev1.Node, bool) // false: unknown, there is no cluster
	promises   *promises
	metrics    *metrics
	log        scheduler.Logger
	now        func() time.Time

	published atomic.Value // readings
	covering  uint32       // atomic; 1: at least one node has fresh data

	// What follows belongs to the goroutine.
	seen  map[string]seen
	state state
}

type seen struct {
	load float64
	at   time.Time
}

type state int

const (
	stateUnknown state = iota
	stateGood
	stateBad
)

// run fetches until ctx is done.
func (s *source) run(ctx context.Context) {
	for {
		s.round(ctx)
		timer := time.NewTimer(s.interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// readings returns what is fresh.
func (s *source) readings() readings {
	current, _ := s.published.Load().(readings)
	return current
}

// covers tells whether any node has fresh data.
func (s *source) covers() bool { return atomic.LoadUint32(&s.covering) == 1 }

// round asks once, publishes, and reports.
func (s *source) round(ctx context.Context) {
	began := s.now()
	samples, err := s.query(ctx, s.metric.Query)
	if ctx.Err() != nil {
		return
	}
	s.metrics.duration.WithLabelValues(s.metric.Name).Observe(s.now().Sub(began).Seconds())
	if err == nil {
		err = s.take(samples, began)
	}
	mismatch := s.publish()
	if err == nil {
		s.promises.settle(s.index, began)
		err = mismatch
	}
	s.promises.expire(s.now())
	s.report(err)
}

// take adds samples to what was seen. The time of the question is theirs: what came of it later is at least that new.
func (s *source) take(samples []sample, asked time.Time) error {
	loads, discarded := read(samples, s.metric, asked.Add(-s.staleAfter))
	for reason, n := range discarded {
		s.metrics.discarded.WithLabelValues(s.metric.Name, reason).Add(float64(n))
	}
	if s.seen == nil {
		s.seen = map[string]seen{}
	}
	for name, load := range loads {
		s.seen[name] = seen{load: load, at: asked}
	}
	if len(loads) == 0 {
		return fmt.Errorf("none of the answer's %d samples can be used: without label %s %d, not a number %d, older than staleAfter by this machine's clock %d",
			len(samples), s.metric.NodeLabel, discarded[discardNoLabel], discarded[discardNaN], discarded[discardOld])
	}
	return nil
}

// publish drops what is stale and makes the rest the current readings. It is an error if there are readings and
// nodes, and none fits the other.
func (s *source) publish() error {
	oldest := s.now().Add(-s.staleAfter)
	current := make(readings, 2*len(s.seen))
	example := ""
	for name, entry := range s.seen {
		if entry.at.Before(oldest) {
			delete(s.seen, name)
			continue
		}
		current[name] = entry.load
		example = name
	}
	nodes, known := s.nodes()
	fresh := len(current)
	if known {
		fresh = current.name(nodes)
		s.metrics.nodes.WithLabelValues(s.metric.Name, "fresh").Set(float64(fresh))
		s.metrics.nodes.WithLabelValues(s.metric.Name, "stale").Set(float64(len(nodes) - fresh))
	}
	covering := uint32(0)
	if fresh > 0 {
		covering = 1
	}
	s.published.Store(current)
	atomic.StoreUint32(&s.covering, covering)
	if fresh == 0 && example != "" && len(nodes) > 0 {
		return fmt.Errorf("label %s, for example %q, is neither the name nor the host name nor an internal address of any of the %d nodes", s.metric.NodeLabel, example, len(nodes))
	}
	return nil
}

// report counts the result, and logs when it is another than last time.
func (s *source) report(err error) {
	name := s.metric.Name
	if err != nil {
		s.metrics.queries.WithLabelValues(name, "error").Inc()
		s.metrics.up.WithLabelValues(name).Set(0)
		if s.state != stateBad {
			s.log.Error(err, "LoadAware gets no load from Prometheus; once what it knows is older than staleAfter, nodes are neutral", "metric", name)
		} else {
			s.log.Info(4, "LoadAware still gets no load from Prometheus", "metric", name, "err", err.Error())
		}
		s.state = stateBad
		return
	}
	s.metrics.queries.WithLabelValues(name, "ok").Inc()
	s.metrics.up.WithLabelValues(name).Set(1)
	s.metrics.success.WithLabelValues(name).Set(float64(s.now().UnixNano()) / float64(time.Second))
	if s.state != stateGood {
		s.log.Info(0, "LoadAware gets load from Prometheus", "metric", name, "samples", len(s.readings()))
	}
	s.state = stateGood
}
