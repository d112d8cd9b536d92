// Package readonly lets a scheduler see a live cluster and change nothing there. The scheduler
// talks to a [Proxy] on loopback, which passes reads and watches to the API server. A [Handler]
// answers every other request, so that no write leaves this machine.
package readonly

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// sessions matches requests that open a connection to a pod, a node or a service. Only by their
// method they are reads. Other connections, such as those for aggregated APIs, have the header
// Upgrade.
var sessions = regexp.MustCompile(
	`^/api/v1/(namespaces/[^/]+/(pods|services)|nodes)/[^/]+/(exec|attach|portforward|proxy)(/|$)`)

// PodsPath is the path for pods in all namespaces.
const PodsPath = "/api/v1/pods"

// mostBytes is more than an API server accepts.
const mostBytes = 8 << 20

// retryInterval is the pause before a watch is tried again.
const retryInterval = time.Second

// Handler answers the requests of a scheduler that a [Proxy] does not pass on.
type Handler interface {
	// Read answers a read. If it returns false, the proxy passes the read on.
	Read(w http.ResponseWriter, r *http.Request) bool
	// Write answers a request with a body that is not a read.
	Write(w http.ResponseWriter, r *http.Request, body []byte)
}

// Proxy is between a scheduler and the API server. It sends nothing but reads.
type Proxy struct {
	server    *url.URL
	transport http.RoundTripper
	agent     string
	reads     http.Handler
	token     string
	log       *zap.Logger
	handler   Handler

	mu       sync.Mutex // of everything below
	leases   map[string]stored
	refusals map[string]refusal // by path
	lost     bool               // the API server
}

// refusal is the answer from an API server that does not let the scheduler read all objects of a
// kind.
type refusal struct {
	err   error
	since time.Time
}

// New returns a proxy for the API server in a configuration.
func New(cfg *rest.Config, log *zap.Logger, handler Handler) (*Proxy, error) {
	transport, err := rest.TransportFor(kubeapi.Streaming(cfg))
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read address of the API server: %w", err)
	}
	p := &Proxy{
		server: server, transport: transport, agent: cfg.UserAgent, token: rand.Text(), log: log, handler: handler,
		leases: map[string]stored{}, refusals: map[string]refusal{},
	}
	p.reads = &httputil.ReverseProxy{
		Transport: p, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Del("Authorization")
			r.Out.Header.Set("User-Agent", p.agent)
		},
		ErrorHandler: Fail,
		ErrorLog:     zap.NewStdLog(log),
	}
	return p, nil
}

// Token is the scheduler's token for the proxy.
func (p *Proxy) Token() string { return p.token }

// ServeHTTP implements [http.Handler]. Only the scheduler has the token: other processes on this
// machine do not get its permissions.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+p.token)) != 1 {
		Refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is not that of the scheduler")
		return
	}
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case sessions.MatchString(r.URL.Path), r.Header.Get("Upgrade") != "":
		Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "the scheduler may only read")
	case strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") && strings.Contains(r.URL.Path, "/leases"):
		p.lease(w, r)
	case !read:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
		if err != nil {
			Refuse(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, err.Error())
			return
		}
		p.handler.Write(w, r, body)
	case !p.handler.Read(w, r):
		p.reads.ServeHTTP(w, r)
	}
}

// AnswerUnchanged answers a patch with the unchanged object of the API server.
func (p *Proxy) AnswerUnchanged(w http.ResponseWriter, r *http.Request) {
	read := r.Clone(r.Context())
	read.Method, read.Body, read.ContentLength, read.URL.RawQuery = http.MethodGet, http.NoBody, 0, ""
	read.URL.Path = strings.TrimSuffix(r.URL.Path, "/status")
	read.Header.Del("Content-Type")
	read.Header.Del("Content-Length")
	p.reads.ServeHTTP(w, read)
}

// Get sends a read to the API server, which answers in JSON.
func (p *Proxy) Get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	target := p.server.JoinPath(path)
	target.RawQuery = query.Encode()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", p.agent)
	return p.RoundTrip(out)
}

// Edit answers a read with the API server's answer to another query, which pass writes. An error of
// pass ends the connection, so that the scheduler reads again.
func (p *Proxy) Edit(w http.ResponseWriter, r *http.Request, query url.Values, pass func(from io.Reader) error) {
	response, err := p.Get(r.Context(), r.URL.Path, query)
	if err != nil {
		Fail(w, r, err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		_, err = io.Copy(w, response.Body)
	} else {
		w.Header().Set("Content-Type", "application/json")
		err = pass(response.Body)
	}
	if err != nil && r.Context().Err() == nil {
		p.log.Warn("the scheduler reads objects again", zap.String("path", r.URL.Path), zap.Error(err))
		panic(http.ErrAbortHandler) // the scheduler has only a part of the response
	}
}

// answered remembers whether the API server lets the scheduler read all objects of a kind.
func (p *Proxy) answered(response *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		p.lost = false
		p.log.Info("the API server responds again")
	}
	query := response.Request.URL.Query()
	if !query.Has("limit") && !IsWatch(query) {
		return nil // of one object
	}
	path := response.Request.URL.Path
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
	default:
		delete(p.refusals, path)
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	status := &metav1.Status{Message: response.Status}
	if DecodeObject(body, status) != nil { // not of an API server
		status.Code = int32(response.StatusCode)
	}
	since := time.Now()
	if earlier, ok := p.refusals[path]; ok {
		since = earlier.since
	}
	p.refusals[path] = refusal{kubeapi.Explain("read "+path+" for the scheduler", apierrors.FromObject(status)), since}
	return nil
}

// Refused returns an error if the API server has refused one of the scheduler's reads for at least
// age, and still refuses it.
func (p *Proxy) Refused(age time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var paths []string
	for path, r := range p.refusals {
		if time.Since(r.since) >= age {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	first := p.refusals[slices.Min(paths)].err
	if len(paths) > 1 {
		return fmt.Errorf("%w (and %d more)", first, len(paths)-1)
	}
	return first
}

// RoundTrip implements [http.RoundTripper]: it sends a read to the API server. A watch waits for an
// API server that does not respond. A client up to 1.21 begins again with a list if a watch fails
// (client-go, tools/cache/reflector.go): it would miss the events in the meantime.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	for {
		response, err := p.transport.RoundTrip(r)
		if err == nil {
			if err = p.answered(response); err != nil {
				_ = response.Body.Close() // it could not be read
			}
		}
		switch {
		case err != nil:
			p.miss(r.Context(), err)
			if !IsWatch(query) {
				return nil, err
			}
		case IsWatch(query) && strings.HasSuffix(r.URL.Path, PodsPath) && temporary(response.StatusCode):
			_ = response.Body.Close() // it has no more to read
		default:
			return response, nil
		}
		if err := clock.Sleep(r.Context(), retryInterval); err != nil {
			return nil, err
		}
	}
}

// temporary reports whether an API server that starts or ends may answer so.
func temporary(code int) bool {
	return code >= http.StatusInternalServerError || code == http.StatusUnauthorized || code == http.StatusForbidden ||
		code == http.StatusNotFound
}

// miss remembers that the API server does not respond. The scheduler may also have ended a request.
func (p *Proxy) miss(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.lost {
		p.lost = true
		p.log.Warn("the API server does not respond", zap.Error(err))
	}
}

// Fail answers a request that did not reach the API server, so that a client repeats it a second
// later.
func Fail(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Retry-After", "1")
	Refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error())
}

// IsWatch reports whether a query is for a watch.
func IsWatch(query url.Values) bool { return query.Get("watch") == "true" || query.Get("watch") == "1" }
