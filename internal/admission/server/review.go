package server

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
)

// reviews answers admission reviews.
type reviews struct {
	Options
	metrics *metrics
	memory  *semaphore.Weighted
	// running has an element for each handler that runs.
	running chan struct{}
}

// statusError is the answer to a request that is no review which the server can answer.
type statusError struct {
	status int
	text   string
}

// Error returns the text of the answer.
func (e *statusError) Error() string { return e.text }

// ServeHTTP implements http.Handler.
func (s *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	name, path, handler := s.find(r.URL.Path)
	if handler == nil {
		s.metrics.requests.WithLabelValues("", resultUnknown).Inc()
		fail(w, &statusError{http.StatusNotFound, "not found"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	review, err := s.receive(ctx, r)
	if review != nil {
		// Until the handler has returned or is late: it holds the object.
		defer s.release(r.ContentLength)
	}
	if err != nil {
		s.metrics.requests.WithLabelValues(name, resultInvalid).Inc()
		s.Log.Warn("an admission review could not be read", zap.String("webhook", name), zap.Error(err))
		fail(w, err)
		return
	}
	answer, elsewhere, result := s.ask(ctx, name, path, handler, review.Request)
	answer.UID = review.Request.UID
	s.metrics.requests.WithLabelValues(name, result).Inc()
	s.metrics.duration.WithLabelValues(name).Observe(time.Since(began).Seconds())
	review.Request, review.Response = nil, answer
	if elsewhere {
		w.Header().Set("Connection", "close")
	}
	s.write(w, review)
}

// find returns the handler for a path of the form /TOKEN/NAME or /TOKEN/NAME/REST. Everything else
// is refused before its body is read.
func (s *reviews) find(path string) (name, rest string, handler Handler) {
	token, path, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.Certificates.Token())) != 1 {
		return "", "", nil
	}
	name, rest, found := strings.Cut(path, "/")
	if found {
		rest = "/" + rest
	}
	return name, rest, s.Handlers[name]
}

// release gives back the memory of a body.
func (s *reviews) release(size int64) {
	if size > smallBody {
		s.memory.Release(size)
	}
}

// receive reads a review after it has taken the memory for its body.
func (s *reviews) receive(ctx context.Context, r *http.Request) (*admissionv1.AdmissionReview, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	if r.ContentLength > smallBody {
		ctx, cancel := context.WithTimeout(ctx, memoryWait)
		defer cancel()
		if err := s.memory.Acquire(ctx, r.ContentLength); err != nil {
			return nil, &statusError{http.StatusServiceUnavailable, "other requests took the memory"}
		}
	}
	review, err := read(r)
	if err != nil {
		s.release(r.ContentLength)
	}
	return review, err
}

// check checks the header of a request.
func check(r *http.Request) error {
	if r.Method != http.MethodPost {
		return &statusError{http.StatusMethodNotAllowed, "an admission review is a POST"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, "the content type is not application/json"}
	}
	switch {
	case r.ContentLength < 0:
		return &statusError{http.StatusLengthRequired, "the request has no Content-Length"}
	case r.ContentLength > maxBody:
		return &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody)}
	}
	return nil
}

// read reads a review of admission.k8s.io/v1.
func read(r *http.Request) (*admissionv1.AdmissionReview, error) {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, &statusError{http.StatusBadRequest, "read the body: " + err.Error()}
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, &statusError{http.StatusBadRequest, "decode the review: " + err.Error()}
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("%.100q %.100q is not an AdmissionReview of %s",
			review.APIVersion, review.Kind, admissionv1.SchemeGroupVersion)}
	}
	if review.Request == nil {
		return nil, &statusError{http.StatusBadRequest, "the review has no request"}
	}
	return review, nil
}

// ask calls the handler. Without its answer in time, the request is allowed.
func (s *reviews) ask(ctx context.Context, name, path string, handler Handler, r *admissionv1.AdmissionRequest) (
	answer *admissionv1.AdmissionResponse, elsewhere bool, result string) {
	select {
	case s.running <- struct{}{}:
	default:
		return &admissionv1.AdmissionResponse{Allowed: true}, false, resultBusy
	}
	type outcome struct {
		answer    *admissionv1.AdmissionResponse
		elsewhere bool
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if caught := recover(); caught != nil {
				s.Log.Error("a webhook panicked", zap.String("webhook", name), zap.Any("panic", caught),
					zap.ByteString("stack", debug.Stack()))
				done <- outcome{}
			}
			<-s.running
		}()
		answer, elsewhere := handler(ctx, path, r)
		done <- outcome{answer, elsewhere}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-ctx.Done():
		return &admissionv1.AdmissionResponse{Allowed: true}, false, resultLate
	}
	switch {
	case got.answer == nil:
		return &admissionv1.AdmissionResponse{Allowed: true}, false, resultError
	case got.answer.Allowed:
		return got.answer, got.elsewhere, resultAllowed
	}
	return got.answer, got.elsewhere, resultDenied
}

func (s *reviews) write(w http.ResponseWriter, review *admissionv1.AdmissionReview) {
	body, err := json.Marshal(review)
	if err != nil {
		fail(w, &statusError{http.StatusInternalServerError, "encode the review: " + err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		s.Log.Debug("an answer could not be written", zap.Error(err))
	}
}

// fail answers a request that was not read: the connection ends with it.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var known *statusError
	if errors.As(err, &known) {
		status = known.status
	}
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
}
