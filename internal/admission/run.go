// Package admission runs the admission webhooks of pmk-sched, and renders the objects that install
// them.
package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/admission/arbiter"
	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/admission/router"
	"github.com/pmk-sched/pmk-sched/internal/admission/server"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Options are the options of Run.
type Options struct {
	// Parts to serve: see [Parts].
	Parts []string
	// Namespace of the webhooks, which they leave alone, and of their Secret and lease.
	Namespace string
	// Listen is the address of the webhooks, MetricsAddress the one of /metrics, /healthz and /readyz.
	Listen, MetricsAddress string
	// Pod is the name of this replica, PodIP the address at which the other replicas reach it.
	Pod, PodIP string
	// DrainTime is the time for which a replica that stops still answers.
	DrainTime time.Duration
}

// statusTime bounds a request for metrics.
const statusTime = 10 * time.Second

// clientQPS is enough for the lease and the Secret; informers make few requests.
const clientQPS, clientBurst = 20, 40

// Run serves the webhooks until ctx ends.
func Run(ctx context.Context, s *session.Session, o Options) error {
	_, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return problem.Invalidf("", "invalid --listen %q: must be an address such as :8443", o.Listen)
	}
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	cfg = kubeapi.Streaming(cfg)
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.Timeout = 0 // of watches
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("run the admission webhooks: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// What the webhooks need outlives the server, which answers until it has stopped.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, life := errgroup.WithContext(life)
	ready := &readiness{}
	group.Go(func() error { return serveStatus(life, o.MetricsAddress, registry, ready, s.Log) })
	group.Go(func() error {
		defer end()
		starting, cancel := context.WithCancel(life)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		serving, err := authority.NewServing(starting, kube, o.Namespace, s.Log)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		handlers, check := map[string]server.Handler{}, func() error { return nil }
		if slices.Contains(o.Parts, Route) {
			routes, err := router.New(starting, life, kube)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			handlers[Route] = func(ctx context.Context, path string, r *admissionv1.AdmissionRequest) (
				*admissionv1.AdmissionResponse, bool) {
				return routes.Admit(ctx, path, r), false // each replica can answer
			}
		}
		if slices.Contains(o.Parts, Arbiter) {
			a, err := arbiter.New(arbiter.Options{Config: cfg, Namespace: o.Namespace, Pod: o.Pod,
				Address: net.JoinHostPort(o.PodIP, port), Serving: serving, Log: s.Log, Metrics: registry})
			if err != nil {
				return err
			}
			group.Go(func() error { return a.Run(life) })
			handlers[arbiter.Path], check = a.Handle, a.Ready
		}
		group.Go(func() error {
			serving.Run(life)
			return nil
		})
		stopped, cancelServer := context.WithCancel(ctx)
		defer cancelServer()
		defer context.AfterFunc(life, cancelServer)()
		return server.Run(stopped, server.Options{
			Listen: o.Listen, Certificates: serving, Handlers: handlers,
			Log: s.Log, Metrics: registry, DrainTime: o.DrainTime,
			OnListen: func(net.Addr) { ready.check.Store(&check) },
		})
	})
	return group.Wait()
}

// readiness is the check of /readyz, nil while the server does not listen.
type readiness struct{ check atomic.Pointer[func() error] }

func (r *readiness) err() error {
	check := r.check.Load()
	if check == nil {
		return errors.New("the webhooks are not served yet")
	}
	return (*check)()
}

// serveStatus serves the metrics and probes until ctx ends.
func serveStatus(ctx context.Context, address string, registry *prometheus.Registry, ready *readiness,
	log *zap.Logger) error {
	if address == "0" {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	reply := func(w http.ResponseWriter, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if _, err := fmt.Fprintln(w, "ok"); err != nil {
			log.Debug("a probe could not be answered", zap.Error(err))
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { reply(w, ready.err()) })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	endpoint := &http.Server{Handler: mux, ReadTimeout: statusTime, WriteTimeout: statusTime, IdleTimeout: time.Minute,
		ErrorLog: zap.NewStdLog(log.WithOptions(zap.IncreaseLevel(zap.WarnLevel)))}
	defer context.AfterFunc(ctx, func() {
		// Serve reports the error.
		_ = endpoint.Close()
	})()
	if err := endpoint.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics at %s: %w", address, err)
	}
	return nil
}
