//go:build linux

// Package apiserver runs a real kube-apiserver with its etcd on loopback, for tests of server-side apply, field ownership, RBAC and
// admission. There are no controllers, no kubelet and no scheduler: a test that needs one does its work.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/apiserver"
)

// Server is a running API server. Close it.
type Server struct {
	*apiserver.Server
	dir string
}

// Start starts etcd and kube-apiserver, and returns when the API server is ready. Their output goes to files in a temporary
// directory; its end is in the error if one does not start. args are more flags of kube-apiserver.
func Start(ctx context.Context, b Binaries, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp(memory(), "apiserver-")
	if err != nil {
		return nil, fmt.Errorf("make directory of API server: %w", err)
	}
	server, err := apiserver.Start(ctx, apiserver.Options{KubeAPIServer: b.KubeAPIServer, Etcd: b.Etcd, Dir: dir, Args: args})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Server{server, dir}, nil
}

// memory returns a directory in memory, where etcd need not wait for a disk that others write to, or "" if there is none.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// ConfigFor returns the configuration of a client that is a user with no permissions but those of RBAC objects.
func (s *Server) ConfigFor(user string, groups ...string) *rest.Config {
	cfg := s.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return cfg
}

// Client returns a client with all permissions.
func (s *Server) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	kube, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// Close stops everything and removes its directory.
func (s *Server) Close() error { return errors.Join(s.Server.Close(), os.RemoveAll(s.dir)) }
