// Package shadow runs a scheduler against a live cluster without changing anything there, and
// compares its decisions with the decisions of the scheduler that binds the pods.
//
// The scheduler talks to a proxy on loopback. The proxy passes reads and watches to the API server,
// and answers everything else itself, so that no write leaves this machine. It hides the pods that
// wait for a node, and shows each of them at the moment when the observed scheduler has decided:
// everything before that moment is as that scheduler has left it. The proxy holds back later events
// until the shadow has decided too, makes it forget its decision, and continues with the real
// decision.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

const (
	// startTime is the time limit for the shadow to read all objects.
	startTime = 5 * time.Minute
	// refusalTime is the time for which the API server may refuse to list a kind, as one does that has
	// not read its roles yet.
	refusalTime  = 5 * time.Second
	pollInterval = 500 * time.Millisecond
	// mostLog limits the bytes that are kept from the shadow's log.
	mostLog = 16 << 20
)

// Request describes the scheduler to run next to a cluster, and for how long.
type Request struct {
	Scheduler pack.Scheduler
	// Observed is the name of the scheduler whose pods are observed.
	Observed string
	For      time.Duration
}

// Run runs a scheduler on the cluster's own objects for a while, and reports how it would have
// decided differently. The cluster is only read. If the context ends before, Run returns an error
// and a report of the time until then.
func Run(ctx context.Context, s *session.Session, r Request) (report *Report, err error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	scheduler, err := kubescheduler.CompileFor(ctx, s, cfg, r.Scheduler)
	if err != nil {
		return nil, err
	}
	dir, remove, err := safeio.MakeTemp("shadow")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p, err := newProxy(cfg, s.Log)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	listener, err := readonly.Listen(kubeconfig, p.Token())
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: zap.NewStdLog(s.Log)}
	defer func() {
		// Not a graceful end: watches would not end.
		if closed := errors.Join(server.Close(), listener.Close()); closed != nil && !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}()
	process, err := startScheduler(ctx, s, scheduler, dir, kubeconfig)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Kill()) }()
	p.names = names{observed: r.Observed, shadow: scheduler.Request.Name, profiles: process.Profiles}
	go func() { _ = server.Serve(listener) }() // until it is closed
	if err := s.Step("start the shadow", func() error { return await(ctx, p, process) }); err != nil {
		return nil, err
	}
	report = &Report{Release: scheduler.Release.String(), Scheduler: scheduler.Request.Name, Observed: r.Observed,
		Notes: process.Notes}
	begin := time.Now()
	err = s.Step(fmt.Sprintf("observe %s for %s", r.Observed, r.For), func() error { return observe(ctx, process, r.For) })
	report.Seconds = time.Since(begin).Seconds()
	p.judge.report(report)
	if unread := p.Refused(0); unread != nil {
		report.Notes = append(report.Notes, unread.Error())
	}
	return report, err
}

// startScheduler starts the scheduler with a configuration for a shadow.
func startScheduler(
	ctx context.Context, s *session.Session, scheduler kubescheduler.Scheduler, dir, kubeconfig string,
) (*kubescheduler.Process, error) {
	return scheduler.Start(ctx, s, dir, kubeconfig, func(c *kubescheduler.Configuration) error {
		return adapt(c, scheduler.Release.Rules().OrderedTies)
	})
}

// observe waits until the time is over. The shadow logs a line for each binding that the proxy
// refuses.
func observe(ctx context.Context, process *kubescheduler.Process, duration time.Duration) error {
	timer, limit := time.NewTimer(duration), time.NewTicker(time.Minute)
	defer timer.Stop()
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-process.Done():
			return ended(ctx, process)
		case <-timer.C:
			return nil
		case <-limit.C:
			if err := process.LimitLog(mostLog); err != nil {
				return fmt.Errorf("limit the log of the shadow: %w", err)
			}
		}
	}
}

// ended returns an error for a scheduler that has ended. Ctrl-C in a terminal ends it too, maybe
// before ctx.
func ended(ctx context.Context, process *kubescheduler.Process) error {
	if err := clock.Sleep(ctx, time.Second); err != nil {
		return err
	}
	return fmt.Errorf("the shadow ended: %s", process.Tail())
}

// await waits until the shadow decides.
func await(ctx context.Context, p *proxy, process *kubescheduler.Process) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		select {
		case <-p.ready:
			return nil
		case <-process.Done():
			return ended(ctx, process)
		case <-ctx.Done():
			return ctx.Err()
		case <-limited.Done():
			return fmt.Errorf("wait until the shadow decides about a pod: %w: %s", limited.Err(), process.Tail())
		case <-poll.C:
			if err := p.Refused(refusalTime); err != nil {
				return problem.WithHint(err, "`pmk-sched shadow --rbac` prints the permissions that a shadow needs")
			}
		}
	}
}

// adapt changes the configuration for a shadow, and refuses one with an extender that binds pods,
// which the proxy does not see. The scheduler logs errors only: it decides about some pods many
// times, maybe for days. With orderedTies it gets an extender, so that it selects among equally
// good nodes at random, as the judge expects. Without verbs an extender is never called, and scores
// all nodes with 0 (Prioritize in pkg/scheduler/extender.go).
func adapt(c *kubescheduler.Configuration, orderedTies bool) error {
	var read map[string]any
	if err := yaml.Unmarshal(c.YAML, &read); err != nil {
		return fmt.Errorf("read rendered configuration: %w", err)
	}
	extenders, _, err := unstructured.NestedSlice(read, "extenders")
	if err != nil {
		return fmt.Errorf("read rendered configuration: %w", err)
	}
	for _, e := range extenders {
		if e, ok := e.(map[string]any); ok && e["bindVerb"] != nil && e["bindVerb"] != "" {
			return problem.Invalidf("remove bindVerb from the configuration",
				"the extender %v binds pods, which a shadow must not do", e["urlPrefix"])
		}
	}
	if orderedTies {
		read["extenders"] = append(extenders, map[string]any{"urlPrefix": "http://127.0.0.1"})
		if c.YAML, err = yaml.Marshal(read); err != nil {
			return fmt.Errorf("add an extender to the configuration of the shadow: %w", err)
		}
	}
	c.Args = append(c.Args, "--v=0")
	return nil
}
