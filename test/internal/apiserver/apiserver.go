//go:build linux

// Package apiserver runs a real kube-apiserver with its etcd on loopback, for tests of server-side
// apply, field ownership, RBAC and admission. It runs without controllers, kubelet and scheduler: a
// test that needs one does its work.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
)

// Server is a running API server. Close it.
type Server struct {
	*apiserver.Server
	// ClientCA is the authority whose certificates clients can use.
	ClientCA *certificates.Authority

	dir string
	// empty is the revision of etcd before the first test.
	empty int64
}

// Start starts etcd and kube-apiserver, and returns when the API server is ready. Their output goes
// to files in a temporary directory; its end is in the error if one does not start. args are more
// flags of kube-apiserver.
func Start(ctx context.Context, b Binaries, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp(memory(), "apiserver-")
	if err != nil {
		return nil, fmt.Errorf("make directory of API server: %w", err)
	}
	s := &Server{dir: dir}
	if err := s.start(ctx, b, args); err != nil {
		if s.Server != nil {
			err = errors.Join(err, s.Server.Close())
		}
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, b Binaries, args []string) (err error) {
	if s.ClientCA, err = newAuthority(); err != nil {
		return err
	}
	clients := filepath.Join(s.dir, "clients.crt")
	if err := os.WriteFile(clients, s.ClientCA.Cert, 0o600); err != nil {
		return fmt.Errorf("write certificate of API server: %w", err)
	}
	args = append([]string{"--client-ca-file=" + clients}, args...)
	s.Server, err = apiserver.Start(ctx,
		apiserver.Options{KubeAPIServer: b.KubeAPIServer, Etcd: b.Etcd, Dir: s.dir, Args: args})
	if err != nil {
		return err
	}
	s.empty, err = s.Revision(ctx)
	return err
}

// StartFor is [Start] for a test, whose end stops the API server.
func StartFor(t testing.TB, b Binaries, args ...string) *Server {
	t.Helper()
	s, err := Start(t.Context(), b, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	return s
}

// Clear removes the objects of earlier tests, so that a test that reads the whole cluster can share
// the API server.
func (s *Server) Clear(t testing.TB) {
	t.Helper()
	if err := s.Reset(context.WithoutCancel(t.Context()), s.empty); err != nil {
		t.Fatal(err)
	}
}

// memory returns a directory in memory, where etcd need not wait for a disk that others write to,
// or "" if there is none.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// ConfigFor returns the configuration of a client that acts as a user, with only the permissions of
// RBAC objects.
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

// Namespace makes a namespace of the test's own and returns its name.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	ns, err := s.Client(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// Close stops everything and removes its directory.
func (s *Server) Close() error { return errors.Join(s.Server.Close(), os.RemoveAll(s.dir)) }
