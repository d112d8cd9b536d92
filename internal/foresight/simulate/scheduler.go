package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
	"github.com/pmk-sched/pmk-sched/versions"
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

// Running is a kube-scheduler whose metrics show its decisions.
type Running struct {
	*Process
	client *http.Client
	// cacheSize is the cache metric's name.
	cacheSize string
}

// startScheduler starts the scheduler.
func (r *Run) startScheduler(ctx context.Context) error {
	kubeconfig, err := r.kubeconfig(ctx)
	if err != nil {
		return err
	}
	process, err := r.Options.Scheduler.Start(ctx, r.Session, r.Options.Dir, kubeconfig, func(c *Configuration) error {
		gates, _ := deviceArgs(r.Options.Scheduler.Release, slices.Sorted(maps.Keys(r.devices.gates)))
		if err := c.setFlags(gates, c.Args, listByName(r.Options.Scheduler.Release)); err != nil {
			return err
		}
		if r.Options.Scheduler.Repeatable {
			if err := c.set("parallelism", 1); err != nil {
				return err
			}
		}
		return r.Options.Observer.Configure(ctx, r, c)
	})
	if err != nil {
		return err
	}
	r.Scheduler = &Running{
		Process: process, cacheSize: r.Options.Scheduler.Release.Rules().Metrics.CacheSize,
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			DialContext:     process.dial,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a certificate that the scheduler has just made, on loopback
		}},
	}
	return nil
}

// kubeconfig writes the scheduler's kubeconfig: with all permissions, or, for a sandbox, with those
// of a kube-scheduler.
func (r *Run) kubeconfig(ctx context.Context) (file string, err error) {
	file = filepath.Join(r.Options.Dir, kubeconfigFile)
	if r.Options.Scheduler.Request.Recorded {
		if err := r.permit(ctx); err != nil {
			return "", err
		}
		err = r.server.WriteSchedulerKubeconfig(file)
	} else {
		err = r.server.WriteKubeconfig(file, "")
	}
	if err != nil {
		return "", fmt.Errorf("write kubeconfig of the scheduler: %w", err)
	}
	return file, nil
}

// listByName are the flags with which a scheduler knows the nodes in name order. From 1.35 on it
// would have another order at each start, since client-go lists objects by watching them
// (WatchListClient, and watchList in tools/cache/reflector.go), and take the first of equally good
// nodes.
func listByName(release versions.Release) []string {
	const gate = "WatchListClient"
	if g := release.Gates()[gate]; g.Exists && g.Default && !g.Locked {
		return []string{"--feature-gates=" + gate + "=false"}
	}
	return nil
}

// OrdersTies reports whether a scheduler that examines one node at a time gives equally good nodes
// to the same pods in each simulation.
func OrdersTies(release versions.Release) bool {
	return release.Rules().OrderedTies && len(listByName(release)) > 0
}

func schedulerLog(dir string) string { return filepath.Join(dir, "kube-scheduler.log") }

// Ended returns an error with the end of the scheduler's log if it has ended.
func (s *Running) Ended() error {
	select {
	case <-s.Done():
		return fmt.Errorf("the scheduler ended: %s", s.Tail())
	default:
		return nil
	}
}

// AwaitCache waits until the scheduler knows the nodes and the pods on them. A scheduler before
// 1.28 starts to schedule earlier.
func (s *Running) AwaitCache(ctx context.Context, nodes, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, cacheTime)
	defer cancel()
	var m counters
	err := s.poll(ctx, func(read counters) bool {
		m = read
		return m.cachedNodes >= nodes && m.cachedPods >= pods
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("wait until the scheduler has read all objects: it has %d of %d nodes and %d of %d pods: %w",
			m.cachedNodes, nodes, m.cachedPods, pods, err)
	}
	return err
}

// poll reads the metrics until done returns true.
func (s *Running) poll(ctx context.Context, done func(counters) bool) error {
	for interval := firstPoll; ; interval = min(2*interval, PollInterval) {
		if err := s.Ended(); err != nil {
			return err
		}
		// It does not serve them yet, or is busy.
		if text, err := s.Metrics(ctx); err == nil && done(parseMetrics(text, s.cacheSize)) {
			return nil
		}
		if err := clock.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// IsIdle reports whether the scheduler has no pod to try.
func (s *Running) IsIdle(ctx context.Context) bool {
	text, err := s.Metrics(ctx)
	return err == nil && parseMetrics(text, s.cacheSize).active == 0
}

// Metrics reads the scheduler's metrics, in Prometheus' text format.
func (s *Running) Metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.MetricsURL, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := s.client.Do(request)
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
