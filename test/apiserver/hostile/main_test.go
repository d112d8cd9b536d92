//go:build linux

// Package hostile runs every command of pmk-sched that connects to a cluster against a cluster that
// attacks its user: an API server with Secrets, ConfigMaps, objects and names that an attacker
// wrote, behind a proxy that changes its answers. The user has a private key, a login of a registry
// and the kubeconfig of another cluster.
package hostile

import (
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, &server))
}
