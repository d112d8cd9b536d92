package kubeapi

import (
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// CountRequests counts the requests from the clients that are made from cfg after the call.
func CountRequests(cfg *rest.Config) *atomic.Int64 {
	var requests atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &requests} })
	return &requests
}

type counter struct {
	http.RoundTripper
	requests *atomic.Int64
}

// RoundTrip counts and sends a request.
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}
