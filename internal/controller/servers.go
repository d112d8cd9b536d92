package controller

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Servers are the versions of the API servers of a cluster, as they report them.
type Servers struct {
	Oldest, Newest string
}

// Mixed reports whether API servers of two minors run.
func (s Servers) Mixed() bool {
	oldest, err := versions.FromServer(s.Oldest)
	newest, failed := versions.FromServer(s.Newest)
	return err == nil && failed == nil && oldest.MinorString() != newest.MinorString()
}

// add adds the version of a server.
func (s *Servers) add(reported string) error {
	release, err := versions.FromServer(reported)
	if err != nil {
		return err
	}
	if oldest, err := versions.FromServer(s.Oldest); err != nil || release.Compare(oldest) < 0 {
		s.Oldest = reported
	}
	if newest, err := versions.FromServer(s.Newest); err != nil || release.Compare(newest) > 0 {
		s.Newest = reported
	}
	return nil
}

// pollServers reads the versions until ctx ends.
func (r *reconciler) pollServers(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := r.o.Interval
		found, err := readServers(ctx, r.config)
		if err != nil {
			r.log.Warn("could not read the versions of the API servers", zap.Error(err))
			pause = min(pause, retryPause)
		} else if last := r.servers.Swap(found); last == nil || *last != *found {
			r.log.Info("versions of the API servers", zap.String("oldest", found.Oldest),
				zap.String("newest", found.Newest))
			select {
			case r.changed <- changedServers{Object: &v1alpha1.CustomScheduler{}}:
			case <-ctx.Done():
			}
		}
		_ = clock.Sleep(ctx, pause) // the loop ends with ctx
	}
	return nil
}

const (
	// versionTimeout bounds the request for a version, and maxVersion its answer in bytes.
	versionTimeout = 5 * time.Second
	maxVersion     = 1 << 16
	// maxServers bounds the API servers that are asked.
	maxServers = 16
	// identityLabel is on the lease of each API server from 1.26 on
	// (pkg/controlplane/instance.go, IdentityLeaseComponentLabelKey).
	identityLabel = "apiserver.kubernetes.io/identity=kube-apiserver"
	// serviceName is a name in the certificate of each API server.
	serviceName = "kubernetes.default.svc"
)

// readServers asks the address of the configuration for the version, over a new connection for each
// request, and more than once if several API servers have a lease: a load balancer answers with any
// of them. It also asks each address of the Service kubernetes. An address of that Service that
// does not answer is left out: pods may not reach it.
func readServers(ctx context.Context, cfg *rest.Config) (*Servers, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	found := &Servers{}
	requests := 1
	if n := countServers(ctx, kube); n > 1 {
		requests = 3 * n
	}
	for range requests {
		reported, err := askVersion(ctx, cfg, "", "")
		if err == nil {
			err = found.add(reported)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, address := range serverAddresses(ctx, kube) {
		if cfg.Insecure { // the credentials are for a server whose certificate is verified
			break
		}
		if reported, err := askVersion(ctx, cfg, address, serviceName); err == nil {
			if err := found.add(reported); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// countServers returns the number of API servers by their leases, 0 before 1.26. The lease of a
// server that ended stays for an hour, which costs requests only.
func countServers(ctx context.Context, kube kubernetes.Interface) int {
	leases, err := kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: identityLabel, Limit: maxServers})
	if err != nil {
		return 0
	}
	return len(leases.Items)
}

// serverAddresses returns the addresses of the Service kubernetes.
func serverAddresses(ctx context.Context, kube kubernetes.Interface) []string {
	slice, err := kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
		return nil
	}
	var list []string
	for _, endpoint := range slice.Endpoints {
		for _, address := range endpoint.Addresses {
			if len(list) < maxServers {
				list = append(list, net.JoinHostPort(address, strconv.Itoa(int(*slice.Ports[0].Port))))
			}
		}
	}
	return list
}

// askVersion asks an API server for its version over a new connection: the server of the
// configuration if address is empty.
func askVersion(ctx context.Context, cfg *rest.Config, address, serverName string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	trust, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return "", fmt.Errorf("read client configuration: %w", err)
	}
	if trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	url, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return "", fmt.Errorf("read client configuration: %w", err)
	}
	if address != "" {
		url.Host, trust.ServerName = address, serverName
	}
	url = url.JoinPath("version")
	transport := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true, DialContext: cfg.Dial, Proxy: cfg.Proxy}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, transport)
	if err != nil {
		return "", fmt.Errorf("read client configuration: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: wrapped}).Do(request)
	if err != nil {
		return "", kubeapi.Explain("ask "+url.Host+" for its version", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxVersion))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	var reported version.Info
	if err == nil {
		err = json.Unmarshal(text, &reported)
	}
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", url.Host, err)
	}
	return reported.GitVersion, nil
}
