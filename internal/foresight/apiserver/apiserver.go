// Package apiserver runs etcd and a release's kube-apiserver as processes on loopback. It runs no
// controllers, kubelets or schedulers: a caller that needs one does its work.
package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

const (
	startTime = 90 * time.Second
	// maxStarts limits the attempts to start a kube-apiserver whose port is taken.
	maxStarts = 3
	// pollInterval is the interval between readiness checks while a server starts.
	pollInterval = 100 * time.Millisecond
)

// Scheduler is a user with its own token. Its permissions come from RBAC objects: every API server
// has a kube-scheduler's roles for it.
const Scheduler = "system:kube-scheduler"

// Options configure the processes.
type Options struct {
	// KubeAPIServer and Etcd are the programs' paths.
	KubeAPIServer, Etcd string
	// Shared is a running server whose etcd is used instead of another one. Args must have a different
	// --etcd-prefix for each API server.
	Shared *Server
	// Dir is a private directory for data, keys and logs. It is the caller's to remove.
	Dir string
	// Args are more flags for kube-apiserver; they follow the others, so that they win.
	Args []string
	// Objects are written to etcd before kube-apiserver starts, so that it knows them from its
	// beginning. They cannot be combined with Shared.
	Objects []Object
	// GCPercent is GOGC for etcd and kube-apiserver: above 100 they need more memory and less time. 0
	// is the default, 100.
	GCPercent int
}

func (o Options) environment() []string {
	if o.GCPercent == 0 {
		return []string{}
	}
	return []string{"GOGC=" + strconv.Itoa(o.GCPercent)}
}

// Server is a running API server. Close it.
type Server struct {
	o Options
	// token belongs to a user with all permissions, and schedulerToken to [Scheduler].
	token, schedulerToken string
	port                  int
	store                 store
	etcd                  *Process
	api                   *Process
}

// Start starts etcd and kube-apiserver, and returns when the API server is ready. Their output goes
// to files in Dir; its end is in the error if one does not start.
func Start(ctx context.Context, o Options) (s *Server, err error) {
	s = &Server{o: o, token: rand.Text(), schedulerToken: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err := s.writeFiles(); err != nil {
		return s, err
	}
	if o.Shared != nil {
		s.store = o.Shared.store
		return s, s.startAtFreePort(ctx)
	}
	return s, s.startWithEtcd(ctx)
}

// startWithEtcd starts etcd and kube-apiserver.
func (s *Server) startWithEtcd(ctx context.Context) error {
	client, err := FreeAddress()
	if err != nil {
		return err
	}
	peers, err := FreeAddress()
	if err != nil {
		return err
	}
	if s.store, err = newStore(s.o.Dir, client, peers); err != nil {
		return err
	}
	s.etcd, err = startProcess(filepath.Join(s.o.Dir, "etcd.log"), s.o.environment(), s.o.Etcd,
		append([]string{"--data-dir=" + filepath.Join(s.o.Dir, "etcd")}, s.store.flags(peers)...)...)
	if err != nil {
		return err
	}
	if err := s.putObjects(ctx); err != nil {
		return err
	}
	return s.startAtFreePort(ctx)
}

// putObjects writes the objects in the options to etcd, which may be starting.
func (s *Server) putObjects(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for chunk := range slices.Chunk(s.o.Objects, transactionSize) {
		for {
			_, err := s.Put(limited, chunk)
			if err == nil {
				break
			}
			if clock.Sleep(limited, pollInterval) != nil {
				return fmt.Errorf("write the first objects: %w\n%s", err, s.etcd.Tail())
			}
		}
	}
	return nil
}

// Restart starts kube-apiserver again with other objects than those in the options.
func (s *Server) Restart(ctx context.Context, objects []Object) error {
	if err := s.api.Kill(); err != nil {
		return err
	}
	var keys []string
	for _, o := range s.o.Objects {
		keys = append(keys, o.Key)
	}
	if err := s.Remove(ctx, keys); err != nil {
		return err
	}
	s.o.Objects = objects
	if err := s.putObjects(ctx); err != nil {
		return err
	}
	return s.StartAPI(ctx)
}

// errPortTaken is the error from a kube-apiserver whose port was free a moment ago.
var errPortTaken = errors.New("another program took its port")

// startAtFreePort starts the kube-apiserver, at another port if it finds its port taken.
func (s *Server) startAtFreePort(ctx context.Context) (err error) {
	for attempt := 1; ; attempt++ {
		if s.port, err = FreePort(); err != nil {
			return err
		}
		if err = s.StartAPI(ctx); attempt == maxStarts || !errors.Is(err, errPortTaken) {
			return err
		}
		if err := s.api.LimitLog(0); err != nil { // StartAPI reads the end of the log
			return fmt.Errorf("start kube-apiserver at another port: %w", err)
		}
	}
}

func (s *Server) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make service account key: %w", err)
	}
	tokens := s.token + `,admin,admin,"system:masters"` + "\n" +
		s.schedulerToken + "," + Scheduler + "," + Scheduler + "\n"
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return errors.Join(
		os.WriteFile(filepath.Join(s.o.Dir, "sa.key"), keyPEM, 0o600),
		os.WriteFile(filepath.Join(s.o.Dir, "tokens.csv"), []byte(tokens), 0o600),
	)
}

// StartAPI starts the kube-apiserver, on the port it had before if it had one, and returns when it
// is ready.
func (s *Server) StartAPI(ctx context.Context) (err error) {
	in := func(name string) string { return filepath.Join(s.o.Dir, name) }
	args := append([]string{
		"--etcd-servers=" + s.store.url, "--etcd-cafile=" + s.store.certFile,
		"--etcd-certfile=" + s.store.certFile, "--etcd-keyfile=" + s.store.keyFile,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(s.port),
		"--endpoint-reconciler-type=none", "--cert-dir=" + in("certs"),
		"--authorization-mode=RBAC", "--token-auth-file=" + in("tokens.csv"), "--anonymous-auth=false",
		"--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + in("sa.key"), "--service-account-signing-key-file=" + in("sa.key"),
	}, s.o.Args...)
	if s.api, err = startProcess(in("kube-apiserver.log"), s.o.environment(), s.o.KubeAPIServer, args...); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.ready(limited)
		if err == nil {
			return nil
		}
		select {
		case <-s.api.Done():
			tail := s.api.Tail()
			if strings.Contains(tail, "address already in use") {
				return fmt.Errorf("kube-apiserver ended: %w: %s", errPortTaken, tail)
			}
			return fmt.Errorf("kube-apiserver ended: %s\n%s", tail, s.etcd.Tail())
		default:
		}
		if clock.Sleep(limited, pollInterval) != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("start kube-apiserver: %w", ctx.Err())
			}
			return fmt.Errorf("kube-apiserver is not ready (%w): %s\n%s", err, s.api.Tail(), s.etcd.Tail())
		}
	}
}

func (s *Server) ready(ctx context.Context) error {
	cfg := s.Config()
	ca, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return err
	}
	// kube-apiserver may be writing the file: a client keeps the first content that it reads from a
	// file for minutes (client-go, transport/ca_rotation.go).
	cfg.CAFile, cfg.CAData = "", ca
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
func (s *Server) StopAPI() error { return s.api.Stop() }

// Config returns the configuration for a client with all permissions.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "https://127.0.0.1:" + strconv.Itoa(s.port), BearerToken: s.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(s.o.Dir, "certs", "apiserver.crt")},
		QPS:             -1, // no limit
	}
}

// WriteKubeconfig writes a kubeconfig to a file: for a user whose only permissions come from RBAC
// objects, or, without a user, with all permissions.
func (s *Server) WriteKubeconfig(file, user string) error {
	return s.writeKubeconfig(file, &clientcmdapi.AuthInfo{Token: s.token, Impersonate: user})
}

// WriteSchedulerKubeconfig writes a kubeconfig with the token of [Scheduler] to a file.
func (s *Server) WriteSchedulerKubeconfig(file string) error {
	return s.writeKubeconfig(file, &clientcmdapi.AuthInfo{Token: s.schedulerToken})
}

func (s *Server) writeKubeconfig(file string, user *clientcmdapi.AuthInfo) error {
	access := s.Config()
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"local": {Server: access.Host, CertificateAuthority: access.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"local": user},
		Contexts:       map[string]*clientcmdapi.Context{"local": {Cluster: "local", AuthInfo: "local"}},
		CurrentContext: "local",
	}, file)
}

// Close stops everything.
func (s *Server) Close() error { return errors.Join(s.api.Stop(), s.etcd.Stop()) }
