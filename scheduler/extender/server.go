package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// DefaultListen is a server's default address: only a scheduler in the same pod or on the same host
// can reach it.
const DefaultListen = "127.0.0.1:8888"

// ServeOptions are the options of Serve.
type ServeOptions struct {
	// Listen is a TCP address, such as ":8443", or the path of a Unix socket after SocketPrefix, which
	// only the user may use; the default is DefaultListen.
	Listen string
	// TLS enables HTTPS; without files the server uses HTTP.
	TLS TLSFiles
	// AnonymousVerbs are served without a client certificate although TLS.ClientCAFile is set: for a
	// scheduler that cannot present one. VerbBind always requires one.
	AnonymousVerbs []string
	// DrainTime is the time for which requests are still accepted after ctx is done, while /readyz
	// already fails, so that clients stop sending. StopTime is the maximum time for running requests
	// after that. It defaults to 10 s.
	DrainTime, StopTime time.Duration
	// Log may be nil.
	Log *zap.Logger
	// OnListen may be nil. It is called with the address when the server accepts requests.
	OnListen func(net.Addr)
}

// Limits for connections. The limits for request bodies are in Options.
const (
	headerTime      = 5 * time.Second
	readTime        = 30 * time.Second // of requests that are not verbs
	answerTime      = 2 * time.Minute
	idleTime        = 2 * time.Minute
	maxHeader       = 16 << 10
	defaultStopTime = 10 * time.Second

	maxConnections, maxConnectionsPerAddress = 256, 128
)

// http2Limits returns limits of the memory that a connection takes in addition to its requests.
func http2Limits() *http.HTTP2Config {
	return &http.HTTP2Config{MaxConcurrentStreams: 16, MaxReadFrameSize: 16 << 10,
		MaxReceiveBufferPerConnection: 128 << 10, MaxReceiveBufferPerStream: 64 << 10}
}

// Serve listens and serves until ctx is done, then stops: /readyz fails, requests are accepted for
// DrainTime, and running requests end. It returns nil after that, or an error if it could not
// serve.
//
// Without ClientCAFile everyone who reaches the address may send requests; with it, all paths
// except /healthz, /readyz, /answered, /metrics and the AnonymousVerbs paths require a client
// certificate signed by one of the CAs.
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
	listener, err := listen(ctx, o.Listen)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", o.Listen, err)
	}
	stopping := &atomic.Bool{}
	server := &http.Server{
		Handler:           draining(stopping, o.identified(h)),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, HTTP2: http2Limits(),
		ConnState: BoundConnections(maxConnections, maxConnectionsPerAddress),
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
	o.Log.Info("serve requests", zap.Stringer("address", listener.Addr()), zap.Bool("tls", config != nil))
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

// SocketPrefix is the prefix of an address that is the path of a Unix socket.
const SocketPrefix = "unix:"

// listen listens at an address. It replaces a socket at which no program listens anymore.
func listen(ctx context.Context, address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, SocketPrefix)
	if !ok {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if c, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(errors.New("another program listens there"), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// BoundConnections returns a function for http.Server.ConnState that closes connections beyond a
// total and a number for each client address: the oldest that has served no request, or the oldest.
// A connection is as old as its last request.
func BoundConnections(total, perAddress int) func(net.Conn, http.ConnState) {
	open := newCrowd(total, perAddress)
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.enter(c, c.RemoteAddr().String(), time.Now(), func() {
				raw := c
				if secure, ok := c.(*tls.Conn); ok {
					raw = secure.NetConn() // tls.Conn.Close may wait for the client
				}
				// The server closes the connection again.
				_ = raw.Close()
			})
		case http.StateClosed, http.StateHijacked:
			open.leave(c)
		default:
			open.renew(c, time.Now(), state == http.StateIdle)
		}
	}
}

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
		return errors.Join(fmt.Errorf("stop serving %s: requests still ran after %s: %w", o.Listen, limit, err),
			server.Close())
	}
	return nil
}

// draining fails /readyz while the server stops, and closes connections after each request.
func draining(stopping *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !stopping.Load() {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/readyz" {
			reply(w, http.StatusServiceUnavailable, "[-]server failed: stopping\nnot ready")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// identified requires a client certificate where one is necessary.
func (o ServeOptions) identified(h http.Handler) http.Handler {
	if o.TLS.ClientCAFile == "" {
		return h
	}
	open := map[string]bool{"/healthz": true, "/readyz": true, "/answered": true, "/metrics": true}
	for _, verb := range o.AnonymousVerbs {
		open["/"+verb] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open[r.URL.Path] && !certified(r.TLS) {
			reply(w, http.StatusUnauthorized, errNoCertificate.Error())
			return
		}
		h.ServeHTTP(w, r)
	})
}

var errNoCertificate = errors.New(
	"client certificate required: set tlsConfig.certFile and keyFile in the scheduler configuration")

func certified(state *tls.ConnectionState) bool { return state != nil && len(state.VerifiedChains) > 0 }
