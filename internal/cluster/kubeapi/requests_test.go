package kubeapi

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestCounterCountsRequests(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var requests atomic.Int64
	client := http.Client{Transport: counter{http.DefaultTransport, &requests}}
	for range 3 {
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 3 {
		t.Errorf("counted %d requests", requests.Load())
	}
}
