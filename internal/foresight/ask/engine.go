package ask

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

const podsPath = readonly.PodsPath

const (
	// startTime is the time limit for the scheduler to read all objects.
	startTime = 5 * time.Minute
	// refusalTime is the time for which the API server may refuse to list a kind, as one does that has
	// not read its roles yet.
	refusalTime  = 5 * time.Second
	pollInterval = 100 * time.Millisecond
	// mostLog limits the bytes that are kept from the scheduler's log.
	mostLog = 16 << 20
	// waiting is the number of questions that may wait for their turn.
	waiting = 64
)

// ErrBusy is returned if too many questions wait.
var ErrBusy = errors.New("too many questions wait for the scheduler: ask again later")

// engine answers questions with a scheduler that it keeps running. Close it.
type engine struct {
	s         *session.Session
	cfg       *rest.Config
	kube      kubernetes.Interface
	scheduler kubescheduler.Scheduler
	// profiles are the scheduler names that the engine answers for.
	profiles []string
	// notEstablished are facts about the scheduler that its answers do not contain.
	notEstablished []string
	// places has an element for each question that waits or is answered. One of them has the turn.
	places chan struct{}
	turn   turns
	// running is the scheduler. It belongs to who has the turn.
	running *running
	done    context.CancelFunc
	ended   chan struct{}
}

// running is a scheduler that runs with its view.
type running struct {
	view    *view
	process *kubescheduler.Process
	close   func() error
}

// start compiles or finds a scheduler, and starts it. The cluster is only read.
func start(ctx context.Context, s *session.Session, r Subject) (*engine, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	e := &engine{s: s, cfg: cfg, notEstablished: r.Unknown, places: make(chan struct{}, waiting),
		ended: make(chan struct{})}
	if e.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	if e.scheduler, err = kubescheduler.CompileFor(ctx, s, cfg, r.Scheduler); err != nil {
		return nil, err
	}
	if err := s.Step("start the scheduler "+e.scheduler.Request.Name, func() error { return e.ensure(ctx) }); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	e.profiles = e.running.process.Profiles
	kept, done := context.WithCancel(context.WithoutCancel(ctx))
	e.done = done
	go e.keep(kept)
	return e, nil
}

// close stops the scheduler.
func (e *engine) close() error {
	e.done()
	<-e.ended
	<-e.turn.join("")
	return e.stop()
}

// keep limits the scheduler's log, and starts the scheduler again if it has ended.
func (e *engine) keep(ctx context.Context) {
	defer close(e.ended)
	for clock.Sleep(ctx, time.Minute) == nil {
		if e.turn.take(ctx, "") != nil {
			return
		}
		err := e.ensure(ctx)
		if err == nil {
			err = e.running.process.LimitLog(mostLog)
		}
		e.turn.end()
		if err != nil && ctx.Err() == nil {
			e.s.Log.Warn("the scheduler does not run", zap.Error(err))
		}
	}
}

// ensure starts the scheduler unless it runs. The caller has the turn.
func (e *engine) ensure(ctx context.Context) error {
	if r := e.running; r != nil {
		select {
		case <-r.process.Done():
			e.s.Log.Warn("the scheduler has ended, and is started again", zap.String("log", r.process.Tail()))
		default:
			return nil
		}
	}
	if err := e.stop(); err != nil {
		e.s.Log.Warn("stop the scheduler", zap.Error(err))
	}
	r, err := e.launch(ctx)
	if err != nil {
		return err
	}
	if err := e.ready(ctx, r); err != nil {
		return errors.Join(err, r.close())
	}
	e.running = r
	return nil
}

// stop stops the scheduler if it runs. The caller has the turn.
func (e *engine) stop() error {
	r := e.running
	if e.running = nil; r == nil {
		return nil
	}
	return r.close()
}

// launch starts the scheduler's process with its view.
func (e *engine) launch(ctx context.Context) (*running, error) {
	dir, remove, err := safeio.MakeTemp("ask")
	if err != nil {
		return nil, err
	}
	v, err := newView(e.cfg, e.s.Log)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	listener, err := readonly.Listen(kubeconfig, v.Token())
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	server := &http.Server{Handler: v, ReadHeaderTimeout: time.Minute, ErrorLog: zap.NewStdLog(e.s.Log)}
	stop := func() error {
		// Not a graceful end: watches would not end.
		closed := errors.Join(server.Close(), listener.Close())
		if errors.Is(closed, net.ErrClosed) {
			closed = nil
		}
		return errors.Join(closed, remove())
	}
	process, err := e.scheduler.Start(ctx, e.s, dir, kubeconfig, e.adapt)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	v.profile = process.Profiles[0]
	go func() { _ = server.Serve(listener) }() // until it is closed
	return &running{view: v, process: process, close: func() error { return errors.Join(process.Kill(), stop()) }}, nil
}

// asyncCalls is the gate with which a scheduler sends a limited number of bindings at once.
const asyncCalls = "SchedulerAsyncAPICalls"

// adapt lets the scheduler send any number of bindings at the same time: a binding is answered when
// the question is.
func (e *engine) adapt(c *kubescheduler.Configuration) error {
	more := []string{"--v=0"}
	if g := e.scheduler.Release.Gates()[asyncCalls]; g.Exists && !g.Locked {
		more = append(more, "--feature-gates="+asyncCalls+"=false")
	}
	return c.SetFlags(c.Args, more)
}

// ready waits until the scheduler knows the cluster.
func (e *engine) ready(ctx context.Context, r *running) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if ok, _ := r.view.synced(); ok {
			break
		}
		if err := r.process.Ended(); err != nil {
			return err
		}
		if err := r.view.Refused(refusalTime); err != nil {
			return problem.WithHint(err, "`pmk-sched ask serve --rbac` prints the permissions that it needs")
		}
		if err := clock.Sleep(ctx, pollInterval); err != nil {
			return fmt.Errorf("wait until the scheduler watches pods: %w: %s", err, r.process.Tail())
		}
	}
	if err := r.awaitCache(ctx, e.kube); err != nil {
		return err
	}
	for {
		err := r.view.rehearse(ctx)
		if err == nil || !errors.Is(err, errUndecided) {
			return err
		}
		if refused := r.view.Refused(refusalTime); refused != nil {
			return problem.WithHint(refused, "`pmk-sched ask serve --rbac` prints the permissions that it needs")
		}
		e.s.Log.Warn("the scheduler does not decide yet", zap.String("log", r.process.Tail()))
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait until the scheduler decides about a pod: %w: %s", err, r.process.Tail())
		}
	}
}

// countNodes returns the number of nodes.
func countNodes(ctx context.Context, kube kubernetes.Interface) (int, error) {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, kubeapi.Explain("read the nodes", err)
	}
	n := len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	return n, nil
}

// awaitCache waits until the scheduler knows the nodes and the pods on them. A scheduler before
// 1.28 starts to schedule earlier. The cluster may remove objects in the meantime.
func (r *running) awaitCache(ctx context.Context, kube kubernetes.Interface) error {
	for {
		nodes, err := countNodes(ctx, kube)
		if err != nil {
			return err
		}
		_, bound := r.view.synced()
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		err = r.process.AwaitCache(limited, nodes, bound)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}
