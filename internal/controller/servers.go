package controller

import (
	"cmp"
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

// Servers are the versions that a cluster's API servers report.
type Servers struct {
	Oldest, Newest string
}

// mixed reports whether the API servers run at two minors.
func (s Servers) mixed() bool {
	oldest, err := versions.FromServer(s.Oldest)
	newest, failed := versions.FromServer(s.Newest)
	return err == nil && failed == nil && oldest.MinorString() != newest.MinorString()
}

// add adds a server's version.
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

// isOlder reports whether an API server is older than all of last.
func (s Servers) isOlder(last Servers) bool {
	oldest, err := versions.FromServer(s.Oldest)
	before, failed := versions.FromServer(last.Oldest)
	return err == nil && failed == nil && oldest.Compare(before) < 0
}

// downgrade counts the consecutive answers that have the same older version.
type downgrade struct {
	oldest  string
	answers int
}

// accepts reports whether found replaces last: at once if no server is older, else when it is the
// answer for the downgradeAnswers-th time. A load balancer that hides the other servers would
// otherwise change each scheduler's release with each answer while two minors run.
func (d *downgrade) accepts(last, found *Servers) bool {
	if last == nil || !found.isOlder(*last) {
		*d = downgrade{}
		return true
	}
	if d.oldest != found.Oldest {
		*d = downgrade{oldest: found.Oldest}
	}
	d.answers++
	return d.answers >= downgradeAnswers
}

// pollServers reads the versions until ctx ends.
func (r *reconciler) pollServers(ctx context.Context) error {
	var down downgrade
	for ctx.Err() == nil {
		pause := r.o.Interval
		found, err := readServers(ctx, r.config)
		if err != nil {
			r.log.Warn("could not read the versions of the API servers", zap.Error(err))
			pause = min(pause, retryPause)
		} else {
			r.observe(ctx, &down, found)
		}
		_ = clock.Sleep(ctx, pause) // the loop ends with ctx
	}
	return nil
}

// observe replaces the versions with those in an answer, and wakes the reconciler.
func (r *reconciler) observe(ctx context.Context, down *downgrade, found *Servers) {
	last := r.servers.Load()
	if !down.accepts(last, found) || last != nil && *last == *found {
		return
	}
	r.servers.Store(found)
	r.log.Info("versions of the API servers", zap.String("oldest", found.Oldest), zap.String("newest", found.Newest))
	select {
	case r.changed <- changedServers{Object: &v1alpha1.CustomScheduler{}}:
	case <-ctx.Done():
	}
}

const (
	// versionTimeout bounds the request for a version, and maxVersion its answer in bytes.
	versionTimeout = 5 * time.Second
	maxVersion     = 1 << 16
	// maxServers bounds the API servers that are asked.
	maxServers = 16
	// unknownServers is the assumed number of API servers where neither leases nor addresses show it.
	unknownServers = 2
	// downgradeAnswers is the number of consecutive equal answers that a change to an older version
	// needs.
	downgradeAnswers = 3
	// identityLabel is on each API server's lease from 1.26 on (pkg/controlplane/instance.go,
	// IdentityLeaseComponentLabelKey).
	identityLabel = "apiserver.kubernetes.io/identity=kube-apiserver"
	// serviceName is a name in each API server's certificate.
	serviceName = "kubernetes.default.svc"
)

// readServers asks the configuration's address for the version, over a new connection for each
// request, and more than once if several API servers may answer: a load balancer answers with any
// of them. It also asks each address of the Service kubernetes. One that does not answer is left
// out: pods may not reach it.
func readServers(ctx context.Context, cfg *rest.Config) (*Servers, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	found, requests, addresses := &Servers{}, 1, serverAddresses(ctx, kube)
	if n := cmp.Or(countServers(ctx, kube), max(len(addresses), unknownServers)); n > 1 {
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
	for _, address := range addresses {
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

// countServers counts the API servers by their leases, and returns 0 before 1.26. The lease of a
// server that ended stays for an hour, which costs requests only.
func countServers(ctx context.Context, kube kubernetes.Interface) int {
	leases, err := kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: identityLabel, Limit: maxServers})
	if err != nil {
		return 0
	}
	return len(leases.Items)
}

// serverAddresses returns the addresses of the Service kubernetes, from its EndpointSlice, or
// before 1.21 from its Endpoints.
func serverAddresses(ctx context.Context, kube kubernetes.Interface) (list []string) {
	add := func(port int32, addresses ...string) {
		for _, address := range addresses {
			if len(list) < maxServers {
				list = append(list, net.JoinHostPort(address, strconv.Itoa(int(port))))
			}
		}
	}
	slice, err := kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err == nil {
		for _, endpoint := range slice.Endpoints {
			if len(slice.Ports) > 0 && slice.Ports[0].Port != nil {
				add(*slice.Ports[0].Port, endpoint.Addresses...)
			}
		}
		return list
	}
	endpoints, err := kube.CoreV1().Endpoints(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, subset := range endpoints.Subsets {
		for _, address := range subset.Addresses {
			if len(subset.Ports) > 0 {
				add(subset.Ports[0].Port, address.IP)
			}
		}
	}
	return list
}

// askVersion asks an API server for its version over a new connection: the configuration's server
// if address is empty.
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
