package loadaware

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// source queries one metric in a separate goroutine, so that a slow query does not delay other
// queries, and publishes the fresh readings. Published readings are immutable; nothing on the
// scheduling path waits for Prometheus.
type source struct {
	metric     Metric
	index      int
	interval   time.Duration
	staleAfter time.Duration
	query      func(ctx context.Context, promQL string) ([]sample, error)
	nodes      func() ([]*corev1.Node, bool) // false: the nodes are unknown
	expected   *expectedLoads
	measured   chan<- struct{}
	metrics    *metrics
	log        scheduler.Logger
	now        func() time.Time

	published atomic.Value // readings
	covering  uint32       // atomic; 1: at least one node has fresh data

	// The fields below are used only by the goroutine.
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

func (s *source) readings() readings {
	current, _ := s.published.Load().(readings)
	return current
}

// covers reports whether any node has fresh data.
func (s *source) covers() bool { return atomic.LoadUint32(&s.covering) == 1 }

// round queries once, publishes and reports the result.
func (s *source) round(ctx context.Context) {
	start := s.now()
	samples, err := s.query(ctx, s.metric.Query)
	if ctx.Err() != nil {
		return
	}
	s.metrics.duration.WithLabelValues(s.metric.Name).Observe(s.now().Sub(start).Seconds())
	if err == nil {
		err = s.take(samples, start)
	}
	mismatch := s.publish()
	if err == nil {
		s.expected.decrease(s.index, start)
		err = mismatch
	}
	s.expected.pods.Expire(s.now())
	s.report(err)
	select {
	case s.measured <- struct{}{}:
	default: // one signal is enough for several queries
	}
}

// take records samples with the time of the query: the data is at least that new.
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
		return fmt.Errorf(
			"none of the %d samples is usable: without label %s %d, not a number %d, older than staleAfter by this machine's "+
				"clock %d",
			len(samples), s.metric.NodeLabel, discarded[discardNoLabel], discarded[discardNaN], discarded[discardOld])
	}
	return nil
}

// publish drops stale readings and publishes the other readings. It is an error if there are
// readings and nodes, but no reading is for any of the nodes.
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
		return fmt.Errorf("label %s, for example %q, is not the name, host name or internal address of any of the %d nodes",
			s.metric.NodeLabel, example, len(nodes))
	}
	return nil
}

// report counts the result, and logs it if it differs from the previous one.
func (s *source) report(err error) {
	name := s.metric.Name
	if err != nil {
		s.metrics.queries.WithLabelValues(name, "error").Inc()
		s.metrics.up.WithLabelValues(name).Set(0)
		if s.state != stateBad {
			s.log.Error(err,
				"LoadAware cannot read load from Prometheus; nodes are neutral once the last data is older than staleAfter",
				"metric", name)
		} else {
			s.log.Info(4, "LoadAware still cannot read load from Prometheus", "metric", name, "err", err.Error())
		}
		s.state = stateBad
		return
	}
	s.metrics.queries.WithLabelValues(name, "ok").Inc()
	s.metrics.up.WithLabelValues(name).Set(1)
	s.metrics.success.WithLabelValues(name).Set(float64(s.now().UnixNano()) / float64(time.Second))
	if s.state != stateGood {
		s.log.Info(0, "LoadAware reads load from Prometheus", "metric", name, "samples", len(s.readings()))
	}
	s.state = stateGood
}
