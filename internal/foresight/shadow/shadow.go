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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
)

const (
	// startTime is how long the shadow may take to read all objects.
	startTime = 5 * time.Minute
	// refusalTime is how long the API server may refuse to list a kind, as one does that has not read its roles yet.
	refusalTime  = 5 * time.Second
	pollInterval = 500 * time.Millisecond
	// mostLog is how many bytes of the shadow's log are kept.
	mostLog = 16 << 20
)

// Options configure the shadow and the scheduler that it is compared with.
type Options struct {
	// Config is the configuration of a client of the cluster, which only needs permissions to read.
	Config    *rest.Config
	Scheduler simulate.Scheduler
	// Observed is the name of the scheduler that the pods name.
	Observed string
	// For is how long to observe.
	For time.Duration
	// Dir is a private directory for the configuration and the log.
	Dir    string
	OnStep func(name string) func(error)
	Log    *zap.Logger
}

// Run runs the scheduler for a while and reports how it would have decided differently. If the
// context ends before, it returns an error and a report of the time until then.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	p, err := newProxy(o.Config, o.Log)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(o.Dir, "kubeconfig")
	listener, err := listen(kubeconfig, p.token)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: zap.NewStdLog(o.Log)}
	defer func() {
		// Not a graceful end: watches would not end.
		if closed := errors.Join(server.Close(), listener.Close()); closed != nil && !errors.Is(closed, net.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}()
	o.Scheduler.Configuration = shadowed(o.Scheduler.Configuration, o.Scheduler.Release.Rules().OrderedTies)
	process, err := o.Scheduler.Start(o.Dir, kubeconfig)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Kill()) }()
	p.names = names{observed: o.Observed, shadow: o.Scheduler.Name, profiles: process.Profiles}
	go func() { _ = server.Serve(listener) }() // until it is closed
	report = &Report{Release: o.Scheduler.Release.String(), Scheduler: o.Scheduler.Name, Observed: o.Observed}
	done := o.OnStep("start the shadow")
	err = await(ctx, p, process)
	done(err)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	done = o.OnStep(fmt.Sprintf("observe %s for %s", o.Observed, o.For))
	err = observe(ctx, process, o.For)
	done(err)
	report.Seconds = time.Since(begin).Seconds()
	p.judge.report(report)
	if unread := p.refused(0); unread != nil {
		report.Notes = append(report.Notes, unread.Error())
	}
	return report, err
}

// observe waits until the time is over. The shadow logs a line for each binding that the proxy refuses.
func observe(ctx context.Context, process *simulate.Process, duration time.Duration) error {
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

// ended returns an error for a scheduler that has ended. Ctrl-C in a terminal ends it too, maybe before ctx.
func ended(ctx context.Context, process *simulate.Process) error {
	if err := clock.Sleep(ctx, time.Second); err != nil {
		return err
	}
	return fmt.Errorf("the shadow ended: %s", process.Tail())
}

// await waits until the shadow decides.
func await(ctx context.Context, p *proxy, process *simulate.Process) error {
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
			if err := p.refused(refusalTime); err != nil {
				return problem.WithHint(err, "`pmk-sched shadow --rbac` prints the permissions that a shadow needs")
			}
		}
	}
}

// shadowed refuses a configuration with an extender that binds pods, which the proxy does not see. The scheduler logs errors only: it decides about
// some pods many times, maybe for days. With orderedTies it gets an extender, so that it selects one of equally good nodes at random, as the judge
// expects. Without verbs an extender is never called, and scores all nodes with 0 (Prioritize in pkg/scheduler/extender.go).
func shadowed(configuration func(string, int) (*simulate.Configuration, error), orderedTies bool) func(string, int) (*simulate.Configuration, error) {
	return func(kubeconfig string, insecurePort int) (*simulate.Configuration, error) {
		c, err := configuration(kubeconfig, insecurePort)
		if err != nil {
			return nil, err
		}
		var read map[string]any
		if err := yaml.Unmarshal(c.YAML, &read); err != nil {
			return nil, fmt.Errorf("read rendered configuration: %w", err)
		}
		extenders, _, err := unstructured.NestedSlice(read, "extenders")
		if err != nil {
			return nil, fmt.Errorf("read rendered configuration: %w", err)
		}
		for _, e := range extenders {
			if e, ok := e.(map[string]any); ok && e["bindVerb"] != nil && e["bindVerb"] != "" {
				return nil, problem.Invalidf("remove bindVerb from the configuration", "the extender %v binds pods, which a shadow must not do", e["urlPrefix"])
			}
		}
		if orderedTies {
			read["extenders"] = append(extenders, map[string]any{"urlPrefix": "http://127.0.0.1"})
			if c.YAML, err = yaml.Marshal(read); err != nil {
				return nil, fmt.Errorf("add an extender to the configuration of the shadow: %w", err)
			}
		}
		c.Args = append(c.Args, "--v=0")
		return c, nil
	}
}
