//go:build linux

// Package apiserver runs a real kube-apiserver with its etcd on loopback, for tests of server-side apply, field ownership, RBAC and
// admission. There are no controllers, no kubelet and no scheduler: a test that needs one does its work.
package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	adminToken = "admin-token"
	startTime  = 90 * time.Second
	stopTime   = 20 * time.Second
)

// Server is a running API server. Close it.
type Server struct {
	binaries Binaries
	dir      string
	port     int
	etcdPort int
	etcd     *process
	api      *process
}

// Start starts etcd and kube-apiserver, and returns when the API server is ready. Their output goes to files in a temporary
// directory; its end is in the error if one does not start.
func Start(ctx context.Context, b Binaries) (s *Server, err error) {
	dir, err := os.MkdirTemp(memory(), "apiserver-")
	if err != nil {
		return nil, fmt.Errorf("make directory of API server: %w", err)
	}
	s = &Server{binaries: b, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err := s.writeFiles(); err != nil {
		return s, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return s, err
	}
	s.port, s.etcdPort = ports[0], ports[1]
	client := "http://127.0.0.1:" + strconv.Itoa(ports[1])
	peer := "http://127.0.0.1:" + strconv.Itoa(ports[2])
	s.etcd, err = startProcess(filepath.Join(dir, "etcd.log"), b.Etcd,
		"--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return s, err
	}
	return s, s.StartAPI(ctx)
}

// memory returns a directory in memory, where etcd need not wait for a disk that others write to, or "" if there is none.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

func (s *Server) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make service account key: %w", err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "sa.key"), keyPEM, 0o600),
		os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(adminToken+`,admin,admin,"system:masters"`+"\n"), 0o600),
	)
}

// StartAPI starts the kube-apiserver, on the port it had before if it had one, and returns when it is ready.
func (s *Server) StartAPI(ctx context.Context) (err error) {
	in := func(name string) string { return filepath.Join(s.dir, name) }
	s.api, err = startProcess(in("kube-apiserver.log"), s.binaries.KubeAPIServer,
		"--etcd-servers=http://127.0.0.1:"+strconv.Itoa(s.etcdPort),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+strconv.Itoa(s.port),
		"--endpoint-reconciler-type=none", "--cert-dir="+in("certs"),
		"--authorization-mode=RBAC", "--token-auth-file="+in("tokens.csv"), "--anonymous-auth=false",
		"--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+in("sa.key"), "--service-account-signing-key-file="+in("sa.key"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.api.done:
			return fmt.Errorf("kube-apiserver ended: %s\n%s", s.api.tail(), s.etcd.tail())
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready (%w): %s\n%s", err, s.api.tail(), s.etcd.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Server) ready(ctx context.Context) error {
	cfg := s.Config()
	if _, err := os.Stat(cfg.CAFile); err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	var code int
	err = kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code).Error()
	if err == nil && code != http.StatusOK {
		return fmt.Errorf("/readyz answers %d", code)
	}
	return err
}

// StopAPI stops the kube-apiserver; etcd keeps running, so that StartAPI finds all data.
func (s *Server) StopAPI() error { return s.api.stop() }

// Config returns the configuration of a client with all permissions.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "https://127.0.0.1:" + strconv.Itoa(s.port), BearerToken: adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(s.dir, "certs", "apiserver.crt")},
		QPS:             -1, // no limit
	}
}

// ConfigFor returns the configuration of a client that is a user with no permissions but those of RBAC objects.
func (s *Server) ConfigFor(user string, groups ...string) *rest.Config {
	cfg := s.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return cfg
}

// Close stops everything and removes its directory.
func (s *Server) Close() error {
	return errors.Join(s.api.stop(), s.etcd.stop(), os.RemoveAll(s.dir))
}

// freePorts returns TCP ports of loopback that were free a moment ago.
func freePorts(n int) (ports []int, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
