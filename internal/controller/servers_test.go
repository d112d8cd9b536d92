package controller

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// balanced answers like a load balancer in front of API servers of these versions, which have a
// lease each. It counts the requests for a version.
func balanced(t *testing.T, versions ...string) (*rest.Config, *atomic.Int64) {
	t.Helper()
	requests := new(atomic.Int64)
	connections := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			if connections[r.RemoteAddr] {
				t.Errorf("two requests over the connection from %s", r.RemoteAddr)
			}
			connections[r.RemoteAddr] = true
			fmt.Fprintf(w, `{"gitVersion": %q}`, versions[int(requests.Add(1))%len(versions)])
		case strings.HasSuffix(r.URL.Path, "/leases"):
			list := coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"},
				Items: make([]coordinationv1.Lease, len(versions))}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, requests
}

// A load balancer may answer with one server several times in a row: there are three requests for
// each server.
func TestVersionsOfSeveralAPIServersBehindOneAddress(t *testing.T) {
	for _, c := range []struct {
		versions       []string
		oldest, newest string
		mixed          bool
		requests       int64
	}{
		{[]string{"v1.24.3"}, "v1.24.3", "v1.24.3", false, 1},
		{[]string{"v1.29.2", "v1.28.7+k3s1", "v1.29.2"}, "v1.28.7+k3s1", "v1.29.2", true, 9},
		{[]string{"v1.29.2", "v1.29.1"}, "v1.29.1", "v1.29.2", false, 6},
	} {
		cfg, requests := balanced(t, c.versions...)
		found, err := readServers(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if found.Oldest != c.oldest || found.Newest != c.newest || found.mixed() != c.mixed ||
			requests.Load() != c.requests {
			t.Errorf("%v: got %+v, mixed %t, after %d requests", c.versions, found, found.mixed(), requests.Load())
		}
	}
}

func TestAnAnswerThatIsNotAVersionIsAnError(t *testing.T) {
	cfg, _ := balanced(t, "latest")
	if _, err := readServers(t.Context(), cfg); err == nil {
		t.Error("accepted")
	}
	if _, err := readServers(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}); err == nil {
		t.Error("a server that does not answer was accepted")
	}
}

// old answers like API servers of Kubernetes 1.20, which have neither leases nor EndpointSlices of
// discovery.k8s.io/v1, behind a load balancer that forwards each connection to the next of
// versions. The Endpoints of the Service kubernetes have the given addresses, of one port, or do
// not exist. It counts the requests for a version.
func old(t *testing.T, endpoints string, versions ...string) (*rest.Config, *atomic.Int64) {
	t.Helper()
	requests := new(atomic.Int64)
	hosts, port, _ := strings.Cut(endpoints, ":")
	var addresses []string
	for _, host := range strings.Fields(hosts) {
		addresses = append(addresses, fmt.Sprintf(`{"ip": %q}`, host))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			fmt.Fprintf(w, `{"gitVersion": %q}`, versions[int(requests.Add(1))%len(versions)])
		case strings.HasSuffix(r.URL.Path, "/leases"):
			fmt.Fprint(w, `{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []}`)
		case endpoints != "" && r.URL.Path == "/api/v1/namespaces/default/endpoints/kubernetes":
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Endpoints",
				"subsets": [{"addresses": [%s], "ports": [{"port": %s}]}]}`, strings.Join(addresses, ","), port)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, requests
}

func TestVersionsOfOldAPIServersBehindOneAddress(t *testing.T) {
	other, _ := old(t, "", "v1.20.15")
	hidden := strings.TrimPrefix(other.Host, "http://")
	for name, c := range map[string]struct {
		endpoints string
		versions  []string
		oldest    string
		requests  int64
	}{
		"the addresses are reached":    {hidden, []string{"v1.21.14"}, "v1.20.15", 6},
		"the addresses do not answer":  {"127.0.0.1:1", []string{"v1.21.14", "v1.20.15"}, "v1.20.15", 6},
		"three addresses":              {"127.0.0.1 127.0.0.2 127.0.0.3:1", []string{"v1.21.14"}, "v1.21.14", 9},
		"the addresses are not listed": {"", []string{"v1.21.14", "v1.20.15"}, "v1.20.15", 6},
		"one server":                   {"", []string{"v1.21.14"}, "v1.21.14", 6},
	} {
		cfg, requests := old(t, c.endpoints, c.versions...)
		found, err := readServers(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if found.Oldest != c.oldest || found.Newest != "v1.21.14" || requests.Load() != c.requests {
			t.Errorf("%s: got %+v after %d requests", name, found, requests.Load())
		}
	}
}

// The addresses of the Service kubernetes get the credentials only if their certificate is one of
// an API server, and verified. Else whoever answers at them would get the token.
func TestCredentialsAreForVerifiedServersOnly(t *testing.T) {
	set, _, err := certificates.Ensure(certificates.Set{}, certificates.Request{Name: "kube-apiserver",
		DNS: []string{serviceName}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	foreign, _, err := certificates.Ensure(certificates.Set{CA: set.CA}, certificates.Request{Name: "other",
		DNS: []string{"other.default.svc"}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(pair certificates.Pair, handler http.HandlerFunc) *httptest.Server {
		certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail
		server.StartTLS()
		t.Cleanup(server.Close)
		return server
	}
	verified := rest.TLSClientConfig{CAData: set.CA.Cert}
	for name, c := range map[string]struct {
		client rest.TLSClientConfig
		server certificates.Pair
		oldest string
		token  string
	}{
		"verified":     {verified, set.Server, "v1.20.15", "Bearer TOKEN"},
		"of another":   {verified, foreign.Server, "v1.21.14", ""},
		"not verified": {rest.TLSClientConfig{Insecure: true}, set.Server, "v1.21.14", ""},
	} {
		tokens := make(chan string, maxServers)
		hidden := serve(c.server, func(w http.ResponseWriter, r *http.Request) {
			tokens <- r.Header.Get("Authorization")
			fmt.Fprint(w, `{"gitVersion": "v1.20.15"}`)
		})
		behind, _ := old(t, strings.TrimPrefix(hidden.URL, "https://"), "v1.21.14")
		target, err := url.Parse(behind.Host)
		if err != nil {
			t.Fatal(err)
		}
		front := serve(set.Server, httputil.NewSingleHostReverseProxy(target).ServeHTTP)
		found, err := readServers(t.Context(),
			&rest.Config{Host: front.URL, BearerToken: "TOKEN", TLSClientConfig: c.client})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(tokens) > 0 {
			got = <-tokens
		}
		if got != c.token || found.Oldest != c.oldest {
			t.Errorf("%s: %+v, the address got %q", name, found, got)
		}
	}
}

// Each answer is from one server, which a load balancer chose.
func TestAReleaseGoesDownOnlyAfterEqualAnswers(t *testing.T) {
	const before, after = "v1.20.15", "v1.21.14"
	for name, c := range map[string]struct{ answers, want []string }{
		"upgrade": {[]string{before, after}, []string{before, after}},
		"two minors in turns": {
			[]string{before, after, before, after, before, before, after},
			[]string{before, after, after, after, after, after, after},
		},
		"two minors are seen in one poll": {
			[]string{after, before + " " + after, after, before + " " + after},
			[]string{after, after, after, after},
		},
		"downgrade": {[]string{after, before, before, before}, []string{after, after, after, before}},
		"two other versions": {
			[]string{after, before, "v1.20.14", before, "v1.20.14"},
			[]string{after, after, after, after, after},
		},
	} {
		r := &reconciler{log: zap.NewNop(), changed: make(chan changedServers, len(c.answers))}
		var down downgrade
		for i, answer := range c.answers {
			found := &Servers{}
			for _, reported := range strings.Fields(answer) {
				if err := found.add(reported); err != nil {
					t.Fatal(err)
				}
			}
			if r.observe(t.Context(), &down, found); r.servers.Load().Oldest != c.want[i] {
				t.Errorf("%s: after %q: got %s, want %s", name, c.answers[:i+1], r.servers.Load().Oldest, c.want[i])
			}
		}
	}
}
