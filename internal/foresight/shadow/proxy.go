package shadow

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

// retryInterval is the pause before a watch is tried again.
const retryInterval = time.Second

// proxy is between the shadow and the API server. It sends nothing but reads.
type proxy struct {
	server    *url.URL
	transport http.RoundTripper
	agent     string
	reads     http.Handler
	token     string
	log       *zap.Logger
	judge     *judge
	names     names
	// ready is closed when the shadow has decided for the first time.
	ready chan struct{}

	mu       sync.Mutex // of everything below
	backlog  []*pod
	leases   map[string]stored
	refusals map[string]refusal // by path
	lost     bool               // the API server
}

// refusal is the answer from an API server that does not let the shadow read all objects of a kind.
type refusal struct {
	err   error
	since time.Time
}

// newProxy returns a proxy for the API server in a configuration.
func newProxy(cfg *rest.Config, log *zap.Logger) (*proxy, error) {
	transport, err := rest.TransportFor(kubeapi.Streaming(cfg))
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read address of the API server: %w", err)
	}
	p := &proxy{
		server: server, transport: transport, agent: cfg.UserAgent, token: rand.Text(), log: log, judge: newJudge(log),
		ready:  make(chan struct{}),
		leases: map[string]stored{}, refusals: map[string]refusal{},
	}
	p.reads = &httputil.ReverseProxy{
		Transport: p, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Del("Authorization")
			r.Out.Header.Set("User-Agent", p.agent)
		},
		ErrorHandler: fail,
		ErrorLog:     zap.NewStdLog(log),
	}
	return p, nil
}

// ServeHTTP implements [http.Handler]. Only the shadow has the token: other processes on this
// machine do not get its permissions.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+p.token)) != 1 {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is not that of the shadow")
		return
	}
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case sessions.MatchString(r.URL.Path), r.Header.Get("Upgrade") != "":
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "the shadow may only read")
	case strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") && strings.Contains(r.URL.Path, "/leases"):
		p.lease(w, r)
	case !read:
		p.write(w, r)
	case r.URL.Path == podsPath && strings.Contains(r.URL.Query().Get("fieldSelector"), "status.phase!="):
		p.pods(w, r)
	default:
		p.reads.ServeHTTP(w, r)
	}
}

// answered remembers whether the API server lets the shadow read all objects of a kind.
func (p *proxy) answered(response *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		p.lost = false
		p.log.Info("the API server responds again")
	}
	query := response.Request.URL.Query()
	if !query.Has("limit") && !isWatch(query) {
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
	if decodeObject(body, status) != nil { // not of an API server
		status.Code = int32(response.StatusCode)
	}
	since := time.Now()
	if earlier, ok := p.refusals[path]; ok {
		since = earlier.since
	}
	p.refusals[path] = refusal{kubeapi.Explain("read "+path+" for the shadow", apierrors.FromObject(status)), since}
	return nil
}

// refused returns an error if the API server has refused one of the shadow's reads for at least
// age, and still refuses it.
func (p *proxy) refused(age time.Duration) error {
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
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
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
			if !isWatch(query) {
				return nil, err
			}
		case isWatch(query) && strings.HasSuffix(r.URL.Path, podsPath) && temporary(response.StatusCode):
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

// miss remembers that the API server does not respond. The shadow may also have ended a request.
func (p *proxy) miss(ctx context.Context, err error) {
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

// fail answers a request that did not reach the API server, so that a client repeats it a second
// later.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error())
}

func isWatch(query url.Values) bool { return query.Get("watch") == "true" || query.Get("watch") == "1" }
