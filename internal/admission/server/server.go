// Package server serves admission webhooks. A request of the API server is answered within a
// second, and allowed if the server fails: requests of a cluster never depend on it.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pmk-sched/pmk-sched/scheduler/extender"
)

// Handler answers the reviews of one webhook, or of those below one path. path is the rest of the
// path, which begins with a slash or is empty. The handler must return soon after ctx ends. An
// object in the request is as large as the API server accepts: decode only the fields that are
// needed, since a list of empty elements takes much more memory than its text.
//
// If elsewhere is set, another replica is the better one to ask: the connection ends with the
// answer, and the API server opens the next one to any replica.
type Handler func(ctx context.Context, path string, r *admissionv1.AdmissionRequest) (
	answer *admissionv1.AdmissionResponse, elsewhere bool)

// Certificates are the serving certificate of the server, and the token in the paths of its
// webhooks.
type Certificates interface {
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Token() string
}

// Options are the options of Run.
type Options struct {
	// Listen is a TCP address, such as ":8443".
	Listen       string
	Certificates Certificates
	// Handlers are the handlers by the first part of the path after the token, such as "arbiter" for
	// /TOKEN/arbiter.
	Handlers map[string]Handler
	Log      *zap.Logger
	// Metrics registers the metrics of the server.
	Metrics prometheus.Registerer
	// DrainTime is the time for which requests are still accepted after ctx ends: the API server
	// learns later that the replica stops.
	DrainTime time.Duration
	// OnListen may be nil. It is called with the address when the server accepts requests.
	OnListen func(net.Addr)
}

// Limits. The API server waits a second for an answer.
const (
	answerTime = 900 * time.Millisecond
	readTime   = time.Second
	writeTime  = 2 * time.Second
	// idleTime is longer than the 90 s after which an API server closes an idle connection. If the
	// server closed it, a request that is sent at that moment would fail.
	idleTime  = 2 * time.Minute
	stopTime  = 2 * time.Second
	maxHeader = 16 << 10
	// maxBody is the API server's limit of 3 MiB for a request, and the review around the object.
	maxBody = 3<<20 + 64<<10
	// smallBody is the size up to which a body is read at once, as those of bindings and most pods:
	// maxConnections bounds their memory to 32 MiB. Clients that are slow to send large bodies do not
	// delay them.
	smallBody = 16 << 10
	// bodyMemory bounds the memory of all larger bodies. A request waits for memoryWait at most.
	bodyMemory = 32 << 20
	memoryWait = 300 * time.Millisecond
	// maxRunning bounds the handlers that run, those included that have not returned in time.
	maxRunning = 1024
	// An API server has a connection for each request that it handles at the same time, by default up
	// to 600 (--max-requests-inflight and --max-mutating-requests-inflight).
	maxConnections, maxConnectionsPerAddress = 2048, 1024
)

// Run listens and serves until ctx ends, and then stops: requests are accepted for DrainTime, and
// running requests end. It returns nil after that, or an error if it could not serve.
func Run(ctx context.Context, o Options) error {
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.Listen, err)
	}
	server := &http.Server{
		Handler: &reviews{Options: o, metrics: m, memory: semaphore.NewWeighted(bodyMemory),
			running: make(chan struct{}, maxRunning)},
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		ConnState:      m.count(extender.BoundConnections(maxConnections, maxConnectionsPerAddress)),
		// Without HTTP/2, which API servers do not use for webhooks: a request that timed out closes its
		// connection, and the next one reaches another replica.
		// API servers open a connection for each request beyond 25 at a time, so that handshakes count.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, GetCertificate: o.Certificates.Certificate},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     zap.NewStdLog(o.Log.WithOptions(zap.IncreaseLevel(zap.WarnLevel))),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	o.Log.Info("serve admission reviews", zap.Stringer("address", listener.Addr()))
	if o.OnListen != nil {
		o.OnListen(listener.Addr())
	}
	stopping := ctx.Done()
	var drained <-chan time.Time
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("serve %s: %w", listener.Addr(), err)
		case <-stopping:
			stopping, drained = nil, time.After(o.DrainTime)
			server.SetKeepAlivesEnabled(false)
		case <-drained:
			return stop(ctx, server)
		}
	}
}

// stop waits for running requests.
func stop(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving admission reviews: %w", err), server.Close())
	}
	return nil
}
