// Package kubeapitest provides API server failures for tests to inject into clients.
package kubeapitest

import (
	"io"
	"net/http"
	"sync/atomic"
)

// LoseAnswer returns a transport for rest.Config.WrapTransport that loses the answer to one
// request: the one with that number, counted from 1. The server has handled that request.
func LoseAnswer(number int32) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &losing{RoundTripper: next, number: number} }
}

type losing struct {
	http.RoundTripper
	number   int32
	requests atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil || l.requests.Add(1) != l.number {
		return answer, err
	}
	_ = answer.Body.Close()
	return nil, io.ErrUnexpectedEOF
}
