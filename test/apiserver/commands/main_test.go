//go:build linux

// Package commands tests commands of pmk-sched against a real API server: status, verify, checks
// before deploying, several control-plane nodes, upgrades, charts, certificates and sysdump. Nodes
// and pods are objects without kubelets.
package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

// empty deletes the objects of other tests from the API server, for a test that reads the whole
// cluster or leaves objects in it.
func empty(t *testing.T) {
	t.Helper()
	server.Clear(t)
	t.Cleanup(func() { server.Clear(t) })
}

// kubeconfig writes a kubeconfig for the API server.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(path, ""); err != nil {
		t.Fatal(err)
	}
	return path
}
