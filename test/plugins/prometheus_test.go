//go:build linux

package plugins

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// exporter plays node_exporter for several nodes; a node's metrics are at /<name>.
type exporter struct {
	*httptest.Server
	mu    sync.Mutex
	last  time.Time
	nodes map[string]*fakeNode
}

type fakeNode struct{ cpu, memory, idle, busy float64 }

func startExporter(t *testing.T, names ...string) *exporter {
	e := &exporter{last: time.Now(), nodes: map[string]*fakeNode{}}
	for _, name := range names {
		e.nodes[name] = &fakeNode{}
	}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.advance()
		n := e.nodes[strings.TrimPrefix(r.URL.Path, "/")]
		const total = 8 << 30
		fmt.Fprintf(w, "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} %f\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} %f\n", n.idle, n.busy)
		fmt.Fprintf(w, "node_memory_MemTotal_bytes %d\nnode_memory_MemAvailable_bytes %f\n", total, total*(1-n.memory))
	}))
	t.Cleanup(e.Close)
	return e
}

// advance adds the time since the last call to the counters, at the load that was set.
func (e *exporter) advance() {
	now := time.Now()
	passed := now.Sub(e.last).Seconds()
	for _, n := range e.nodes {
		n.idle += passed * (1 - n.cpu)
		n.busy += passed * n.cpu
	}
	e.last = now
}

// load sets the load of nodes, CPU and memory alike.
func (e *exporter) load(loads map[string]float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance()
	for name, load := range loads {
		e.nodes[name].cpu, e.nodes[name].memory = load, load
	}
}

// prometheusServer is a real Prometheus.
type prometheusServer struct {
	dir, address string
	cmd          *exec.Cmd
	done         chan struct{}
}

// newPrometheus configures a Prometheus that scrapes the nodes of the exporter; instances are the labels by node.
func newPrometheus(t *testing.T, e *exporter, instances map[string]string) *prometheusServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheusServer{dir: t.TempDir(), address: listener.Addr().String()}
	listener.Close()
	var config strings.Builder
	config.WriteString("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n")
	for name, instance := range instances {
		fmt.Fprintf(&config, "- job_name: %s\n  metrics_path: /%s\n  static_configs: [{targets: [%q], labels: {instance: %q}}]\n",
			name, name, e.Listener.Addr().String(), instance)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "prometheus.yml"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// start starts it, with the data it had, and waits until it is ready.
func (p *prometheusServer) start(ctx context.Context, t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command("prometheus", "--config.file="+filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address="+p.address)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start prometheus: %v (make deps installs it)", err)
	}
	done := make(chan struct{})
	p.done = done
	go func(cmd *exec.Cmd) {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its log
	}(p.cmd)
	eventually(ctx, t, "Prometheus is ready", func() (bool, string) {
		response, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			return false, err.Error() + "\n" + string(text)
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

func (p *prometheusServer) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
	p.cmd = nil
}

// How a gate treats requests.
const (
	gateOpen int32 = iota
	gateGarbage
	gateHanging
)

// gate is a proxy with TLS that asks for a bearer token, as they stand before a Prometheus in a cluster.
type gate struct {
	*httptest.Server
	mode atomic.Int32
}

func startGate(t *testing.T, p *prometheusServer, token string) *gate {
	g := &gate{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: p.address})
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
