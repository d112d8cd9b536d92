//go:build linux

package plugins

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
)

// How a gate treats requests.
const (
	gateOpen int32 = iota
	gateGarbage
	gateHanging
)

// gate is a proxy with TLS that requires a bearer token, as clusters put one in front of
// Prometheus.
type gate struct {
	*httptest.Server
	mode atomic.Int32
}

func startGate(t *testing.T, p *prometheus.Server, token string) *gate {
	g := &gate{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: p.Address})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // a Prometheus that is stopped is part of the test
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.mode.Load() == gateHanging:
			<-r.Context().Done()
		case g.mode.Load() == gateGarbage:
			fmt.Fprint(w, "<html>maintenance</html>")
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}
