//go:build linux && cases

package shadow

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// relay passes connections to an API server until it is cut.
type relay struct {
	kubeconfig, address, server string

	mu          sync.Mutex
	listener    net.Listener
	connections []net.Conn
}

// newRelay returns a relay in front of the API server of a kubeconfig, with its own kubeconfig.
func newRelay(t *testing.T, kubeconfig string) *relay {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), address: "127.0.0.1:0"}
	r.open(t)
	t.Cleanup(r.cut)
	for _, c := range config.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		r.server, server.Host = server.Host, r.address
		c.Server = server.String()
	}
	if err := clientcmd.WriteToFile(*config, r.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return r
}

// open accepts connections, at the same address as before.
func (r *relay) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener, r.address = listener, listener.Addr().String()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it is cut
			}
			go r.pass(from)
		}
	}()
}

func (r *relay) pass(from net.Conn) {
	to, err := net.Dial("tcp", r.server)
	if err != nil {
		_ = from.Close()
		return
	}
	r.mu.Lock()
	r.connections = append(r.connections, from, to)
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(to, from) // until it is cut
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
	_ = from.Close()
}

// cut ends all connections, and accepts no more.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close() // it may be cut already
	}
	for _, c := range r.connections {
		_ = c.Close()
	}
	r.listener, r.connections = nil, nil
}
