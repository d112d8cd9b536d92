//go:build linux

// Package prometheus runs a real Prometheus for tests, and the nodes whose load it measures.
package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// memoryBytes is how much memory each node has.
const memoryBytes = 8 << 30

// Exporter serves metrics as node_exporter does, for several nodes. A node's metrics are at
// /<name>.
type Exporter struct {
	*httptest.Server
	mu    sync.Mutex
	last  time.Time
	nodes map[string]*load
}

// load is how loaded a node is, as a share of it, and the seconds that its counters have counted.
type load struct{ cpu, memory, idle, busy float64 }

// StartExporter starts an exporter on loopback for nodes that are idle until Load is called. It
// ends with the test.
func StartExporter(t *testing.T, names ...string) *Exporter {
	t.Helper()
	e := &Exporter{last: time.Now(), nodes: map[string]*load{}}
	for _, name := range names {
		e.nodes[name] = &load{}
	}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *Exporter) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, known := e.nodes[strings.TrimPrefix(r.URL.Path, "/")]
	if !known {
		http.NotFound(w, r)
		return
	}
	e.advance()
	fmt.Fprintf(w,
		"node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} %f\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} %f\n", n.idle,
		n.busy)
	fmt.Fprintf(w, "node_memory_MemTotal_bytes %d\nnode_memory_MemAvailable_bytes %f\n", memoryBytes,
		memoryBytes*(1-n.memory))
}

// advance adds the time since the last call to the counters, at the load that was set.
func (e *Exporter) advance() {
	now := time.Now()
	passed := now.Sub(e.last).Seconds()
	for _, n := range e.nodes {
		n.idle += passed * (1 - n.cpu)
		n.busy += passed * n.cpu
	}
	e.last = now
}

// Load sets the load of nodes, CPU and memory alike, as a share: 0 to 1.
func (e *Exporter) Load(loads map[string]float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance()
	for name, share := range loads {
		e.nodes[name].cpu, e.nodes[name].memory = share, share
	}
}
