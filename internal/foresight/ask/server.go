package ask

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Limits for requests.
const (
	// MostBody limits the bytes of a question.
	MostBody = 1 << 20
	// bodies limits the bytes of the questions that arrive at the same time, and decoding the number
	// of questions that are decoded.
	bodies, decoding = 32 << 20, 2
	// bodyTime is the time limit for a body to arrive, and answerTime for an answer, including the
	// questions before.
	bodyTime   = 5 * time.Second
	answerTime = 100 * time.Second
	// questionTime is the time limit for the scheduler to work on a question.
	questionTime = 30 * time.Second
	// perAddress limits the questions of one client address that wait or are answered.
	perAddress = waiting / 2
)

// Status describes a scheduler that answers questions.
type Status struct {
	Scheduler string   `json:"scheduler"`
	Release   string   `json:"release,omitempty"`
	Profiles  []string `json:"profiles"`
	// Questions is the number of questions that wait or are answered.
	Questions int `json:"questions"`
	// Error is the reason why the scheduler does not answer.
	Error string `json:"error,omitempty"`
}

// status returns the state of the engine.
func (e *engine) status() Status {
	return Status{Scheduler: e.scheduler.Request.Name, Release: e.scheduler.Release.String(), Profiles: e.profiles,
		Questions: len(e.places)}
}

// Failure is the answer to a request that failed.
type Failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// answerer answers questions; [Schedulers] is one.
type answerer interface {
	Ask(ctx context.Context, client string, q Question) (*Answer, error)
	Status() []Status
}

// handler serves schedulers over HTTP.
type handler struct {
	schedulers answerer
	// token is required from clients unless it is empty.
	token    string
	log      *zap.Logger
	memory   *semaphore.Weighted
	decoders chan struct{}

	mu sync.Mutex
	// clients counts the questions of each client address.
	clients map[string]int
}

// NewHandler returns the API of schedulers: POST /v1/ask, GET /v1/status, /openapi, /healthz and
// /readyz. Clients need the token, unless it is empty, except for the last three.
func NewHandler(s *Schedulers, token string, log *zap.Logger) http.Handler {
	return newHandler(s, token, log)
}

func newHandler(s answerer, token string, log *zap.Logger) http.Handler {
	h := &handler{schedulers: s, token: token, log: log, memory: semaphore.NewWeighted(bodies),
		decoders: make(chan struct{}, decoding), clients: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/ask", h.permitted(h.ask))
	mux.HandleFunc("GET /v1/status", h.permitted(func(w http.ResponseWriter, _ *http.Request) {
		h.write(w, http.StatusOK, h.schedulers.Status())
	}))
	mux.HandleFunc("GET /openapi", func(w http.ResponseWriter, _ *http.Request) { h.write(w, http.StatusOK, OpenAPI()) })
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	}
	return mux
}

// permitted requires the token.
func (h *handler) permitted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		want := []byte("Bearer " + h.token)
		if h.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			h.fail(w, http.StatusUnauthorized, errors.New("the request has no token, or another one"))
			return
		}
		next(w, r)
	}
}

func (h *handler) ask(w http.ResponseWriter, r *http.Request) {
	client, leave, ok := h.enter(r)
	if !ok {
		h.fail(w, http.StatusTooManyRequests, errors.New("too many questions of this client wait"))
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	q, code, err := h.receive(ctx, w, r)
	if err != nil {
		h.fail(w, code, err)
		return
	}
	answer, err := h.schedulers.Ask(ctx, client, *q)
	switch {
	case r.Context().Err() != nil: // the client is gone
	case err != nil:
		h.fail(w, StatusOf(err), err)
	default:
		h.write(w, http.StatusOK, answer)
	}
}

// enter counts a question of a client. It returns the client's address, and false if the client has
// too many.
func (h *handler) enter(r *http.Request) (address string, leave func(), ok bool) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr // of a socket
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[address] >= perAddress {
		return address, nil, false
	}
	h.clients[address]++
	return address, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.clients[address]--; h.clients[address] == 0 {
			delete(h.clients, address)
		}
	}, true
}

// receive reads a question.
func (h *handler) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) (*Question, int, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "application/json":
		return nil, http.StatusUnsupportedMediaType, errors.New("the content type is not application/json")
	case r.ContentLength < 0:
		return nil, http.StatusLengthRequired, errors.New("the request has no Content-Length")
	case r.ContentLength > MostBody:
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", MostBody)
	}
	if err := h.memory.Acquire(ctx, r.ContentLength); err != nil {
		return nil, http.StatusServiceUnavailable, errors.New("other requests took the memory")
	}
	defer h.memory.Release(r.ContentLength)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a connection without deadlines has no limit
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the body: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	select {
	case h.decoders <- struct{}{}:
		defer func() { <-h.decoders }()
	case <-ctx.Done():
		return nil, http.StatusServiceUnavailable, ctx.Err()
	}
	q := &Question{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the question: %w", err)
	}
	return q, 0, nil
}

func (h *handler) fail(w http.ResponseWriter, code int, err error) {
	failure := Failure{Error: err.Error(), Hint: strings.Join(problem.Hints(err), "; ")}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, code, failure)
}

func (h *handler) write(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		h.log.Error("encode an answer", zap.Error(err))
		code, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(append(text, '\n')); err != nil {
		h.log.Debug("an answer could not be written", zap.Error(err))
	}
}
