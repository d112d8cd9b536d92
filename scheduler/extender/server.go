package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// DefaultListen is where a server listens that is told nothing: where only a scheduler in the same pod or on the same host reaches it.
const DefaultListen = "127.0.0.1:8888"

// ServeOptions say how a handler is served.
type ServeOptions struct {
	// Listen is a TCP address, such as ":8443"; empty is DefaultListen.
	Listen string
	// TLS makes the server speak HTTPS; without files it speaks HTTP.
	TLS TLSFiles
	// DrainTime is how long requests are still taken after ctx is done, with /readyz already saying no: the time that the
	// news need to reach whoever sends requests here. StopTime is how long running requests may take after that; 0 is 10 s.
	DrainTime, StopTime time.Duration
	// Log may be nil.
	Log *zap.Logger
	// OnListen may be nil. It is told of the address once requests are taken.
	OnListen func(net.Addr)
}

// Bounds of what a connection may cost. The bodies of requests have their own, see Options.
const (
	headerTime      = 5 * time.Second
	idleTime        = 2 * time.Minute
	maxHeader       = 64 << 10
	defaultStopTime = 10 * time.Second
)

// Serve listens and serves until ctx is done, then stops: it says so at /readyz, goes on for DrainTime, and lets
// running requests end. It returns nil if it stopped so, or why it could not serve.
//
// Without ClientCAFile anyone who reaches the address may ask; with it, all but /healthz, /readyz and /metrics need a client
// certificate that the authorities signed.
func Serve(ctx context.Context, o ServeOptions, h http.Handler) error {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	config, err := o.TLS.config(o.Log)
	if err != nil {
		return fmt.Errorf("serve %s: %w", o.Listen, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.Listen, err)
	}
	stopping := &atomic.Bool{}
	server := &http.Server{
		Handler:           draining(stopping, o.TLS.identified(h)),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		TLSConfig: config, ErrorLog: zap.NewStdLog(o.Log.WithOptions(zap.IncreaseLevel(zap.WarnLevel))),
	}
	ended := make(chan error, 1)
	go func() {
		if config == nil {
			ended <- server.Serve(listener)
			return
		}
		ended <- server.ServeTLS(listener, "", "")
	}()
	o.Log.Info("serve requests of schedulers", zap.Stringer("address", listener.Addr()), zap.Bool("tls", config != nil))
	if o.OnListen != nil {
		o.OnListen(listener.Addr())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stopping.Store(true)
	return o.stop(ctx, server, ended)
}

// stop ends a server that was told to stop.
func (o ServeOptions) stop(ctx context.Context, server *http.Server, ended <-chan error) error {
	o.Log.Info("stop", zap.Duration("drain", o.DrainTime))
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", o.Listen, err)
	case <-time.After(o.DrainTime):
	}
	limit := o.StopTime
	if limit == 0 {
		limit = defaultStopTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving %s: requests still ran after %s: %w", o.Listen, limit, err), server.Close())
	}
	return nil
}

// draining says at /readyz that the server stops, and has clients look for another connection.
func draining(stopping *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !stopping.Load() {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/readyz" {
			reply(w, http.StatusServiceUnavailable, "[-]server failed: it stops\nnot ready")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// identified lets requests through that need no client certificate, or have one.
func (f TLSFiles) identified(h http.Handler) http.Handler {
	if f.ClientCAFile == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
		default:
			if !certified(r.TLS) {
				reply(w, http.StatusUnauthorized, "this needs a client certificate: give the scheduler's configuration tlsConfig.certFile and keyFile")
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

func certified(state *tls.ConnectionState) bool { return state != nil && len(state.VerifiedChains) > 0 }
