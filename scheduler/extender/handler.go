package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Names of the requests, which a scheduler configuration sets as filterVerb and so on.
const (
	VerbFilter     = "filter"
	VerbPrioritize = "prioritize"
	VerbPreempt    = "preempt"
	VerbBind       = "bind"
)

// DefaultVerbs are the verbs that an extender serves by default. They change nothing.
func DefaultVerbs() []string { return []string{VerbFilter, VerbPrioritize, VerbPreempt} }

func checkVerbs(verbs []string) error {
	for _, v := range verbs {
		if v != VerbBind && !slices.Contains(DefaultVerbs(), v) {
			return &optionError{fmt.Sprintf("unknown verb %q: use %s or %s", v, strings.Join(DefaultVerbs(), ", "), VerbBind)}
		}
	}
	return nil
}

// Handler returns the handler of the verbs, the probes and the metrics.
func (e *Extender) Handler() http.Handler {
	mux := http.NewServeMux()
	buffers := &sync.Pool{New: func() any { return &buffer{} }}
	for _, v := range []verb{
		{name: VerbFilter, do: e.serveFilter, encodeError: filterError},
		{name: VerbPrioritize, do: e.servePrioritize},
		{name: VerbPreempt, do: e.servePreempt},
		{name: VerbBind, do: e.serveBind, encodeError: bindError},
	} {
		v.Extender, v.buffers = e, buffers
		if slices.Contains(e.verbs, v.name) {
			mux.Handle("POST /"+v.name, v)
		} else {
			mux.HandleFunc("POST /"+v.name, v.notServed)
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", e.serveReady)
	mux.HandleFunc("GET /answered", e.serveAnswered)
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxMetrics}))
	return withOneSlash(mux)
}

// withOneSlash serves //filter, the path of filterVerb: /filter, as /filter. http.ServeMux would
// redirect it, which not every client follows with the same request.
func withOneSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "//") {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = "/"+strings.TrimLeft(r.URL.Path, "/"), ""
		}
		next.ServeHTTP(w, r)
	})
}

type verb struct {
	*Extender
	name    string
	buffers *sync.Pool
	// do answers a request by appending to out.
	do func(ctx context.Context, body, out []byte) (answer, error)
	// encodeError encodes an error in the form of the verb's answer, or returns nil if the answer
	// has no field for it.
	encodeError func(message string) interface{}
}

// answer is the answer to a request; in and out are numbers of nodes. pod is also set with an error
// if policies were asked.
type answer struct {
	pod     *corev1.Pod
	body    []byte
	in, out int
}

// buffer holds an answer. Buffers are reused.
type buffer struct{ out []byte }

const (
	// keptBuffer is the maximum size of a buffer that is reused.
	keptBuffer = 512 << 10
	// maxMetrics is the number of requests for metrics at the same time.
	maxMetrics = 10
)

// Results of requests in the metrics.
const (
	resultOK       = "ok"
	resultError    = "error"
	resultInvalid  = "invalid"
	resultCanceled = "canceled"
	resultBusy     = "busy"
)

// ServeHTTP implements http.Handler.
func (v verb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	if v.name == VerbBind && !certified(r.TLS) {
		// A binding is made with the extender's rights, so that only who can prove its identity may ask
		// for one.
		v.metrics.requests.WithLabelValues(v.name, resultInvalid).Inc()
		v.refuse(w, http.StatusUnauthorized, errNoCertificate)
		return
	}
	result := v.serve(w, r)
	v.metrics.requests.WithLabelValues(v.name, result).Inc()
	if result != resultBusy {
		v.metrics.duration.WithLabelValues(v.name).Observe(time.Since(began).Seconds())
	}
}

// serve reads and answers a request, and returns its result for the metrics.
func (v verb) serve(w http.ResponseWriter, r *http.Request) (result string) {
	arrived := v.newBody(w, r)
	defer arrived.charge.shrink(0)
	status, err := arrived.receive()
	arrived.stopWaiting()
	if err != nil {
		// The server would wait for the rest of the body before it answers.
		w.Header().Set("Connection", "close")
		v.refuse(w, status, fmt.Errorf("read the request: %w", err))
		if status == http.StatusServiceUnavailable {
			return resultBusy
		}
		return resultInvalid
	}
	return v.answer(w, r, arrived)
}

func (v verb) notServed(w http.ResponseWriter, _ *http.Request) {
	v.metrics.requests.WithLabelValues(v.name, resultInvalid).Inc()
	v.refuse(w, http.StatusNotFound,
		fmt.Errorf("not served: this extender serves %s (verbs in its configuration)", strings.Join(v.verbs, ", ")))
}

// limit is the maximum size of a body in bytes.
func (v verb) limit() int64 {
	if v.maxBody > 0 {
		return v.maxBody
	}
	return v.limits().body()
}

func (v verb) answer(w http.ResponseWriter, r *http.Request, arrived *body) (result string) {
	held := v.buffers.Get().(*buffer)
	defer func() {
		if cap(held.out) <= keptBuffer {
			v.buffers.Put(held)
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), v.callTime)
	defer cancel()
	a, err := v.guardedDo(ctx, arrived.content, held.out[:0])
	var invalid *requestError
	var large *sizeError
	switch {
	case errors.As(err, &large):
		v.refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read the request: %w", err))
		return resultInvalid
	case errors.As(err, &invalid):
		v.refuse(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return resultInvalid
	case r.Context().Err() != nil:
		v.log.Debug("the scheduler canceled a request", zap.String("verb", v.name), zap.Error(err))
		return resultCanceled
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = fmt.Errorf("the policies took longer than %s", v.callTime)
	}
	v.probes.note(v.name, a.pod) // before the scheduler can bind the pod
	if err != nil {
		v.report(w, err)
		return resultError
	}
	held.out = a.body
	v.metrics.nodes.WithLabelValues(v.name, "in").Add(float64(a.in))
	v.metrics.nodes.WithLabelValues(v.name, "out").Add(float64(a.out))
	arrived.content = nil // only the answer is kept while the client reads it
	arrived.charge.shrink(int64(cap(a.body)))
	v.writeAnswer(w, r, a.body)
	return resultOK
}

// guardedDo calls do; a panic outside of policies ends only the request.
func (v verb) guardedDo(ctx context.Context, body, out []byte) (a answer, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			v.log.Error("a request panicked", zap.String("verb", v.name), zap.Any("panic", caught),
				zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("the extender panicked: %v", caught)
		}
	}()
	return v.do(ctx, body, out)
}

// report reports an error to the scheduler. Its event or log shows the message, so the message
// names the extender.
func (v verb) report(w http.ResponseWriter, err error) {
	message := fmt.Sprintf("extender %s: %s: %s", v.Extender.name, v.name, err)
	v.log.Warn("a request failed", zap.String("verb", v.name), zap.Error(err))
	if v.encodeError == nil {
		v.write(w, http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(message+"\n"))
		return
	}
	body, marshalErr := json.Marshal(v.encodeError(message))
	if marshalErr != nil {
		v.write(w, http.StatusInternalServerError, "text/plain; charset=utf-8", []byte(message+"\n"))
		return
	}
	v.write(w, http.StatusOK, "application/json", body)
}

// refuse answers a request that could not be decoded.
func (v verb) refuse(w http.ResponseWriter, status int, err error) {
	v.log.Warn("a request could not be read", zap.String("verb", v.name), zap.Int("status", status), zap.Error(err))
	v.write(w, status, "text/plain; charset=utf-8",
		[]byte(fmt.Sprintf("extender %s: %s: %s\n", v.Extender.name, v.name, err)))
}

func (v verb) write(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	n, err := w.Write(body)
	v.metrics.bytes.WithLabelValues(v.name, "out").Add(float64(n))
	if err != nil {
		v.log.Debug("an answer could not be written", zap.String("verb", v.name), zap.Error(err))
	}
}

func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	// A client that has disconnected needs no answer.
	_, _ = io.WriteString(w, text+"\n")
}

func filterError(message string) interface{} { return extenderv1.ExtenderFilterResult{Error: message} }

func bindError(message string) interface{} { return extenderv1.ExtenderBindingResult{Error: message} }

type requestError struct{ err error }

// Error returns the message.
func (e *requestError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *requestError) Unwrap() error { return e.err }
