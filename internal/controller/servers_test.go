package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// balanced answers like a load balancer in front of API servers of these versions, which have a
// lease each.
func balanced(t *testing.T, versions ...string) *rest.Config {
	t.Helper()
	var requests atomic.Int64
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
	return &rest.Config{Host: server.URL}
}

func TestVersionsOfSeveralAPIServersBehindOneAddress(t *testing.T) {
	for _, c := range []struct {
		versions       []string
		oldest, newest string
		mixed          bool
	}{
		{[]string{"v1.24.3"}, "v1.24.3", "v1.24.3", false},
		{[]string{"v1.29.2", "v1.28.7+k3s1", "v1.29.2"}, "v1.28.7+k3s1", "v1.29.2", true},
		{[]string{"v1.29.2", "v1.29.1"}, "v1.29.1", "v1.29.2", false},
	} {
		found, err := readServers(t.Context(), balanced(t, c.versions...))
		if err != nil {
			t.Fatal(err)
		}
		if found.Oldest != c.oldest || found.Newest != c.newest || found.Mixed() != c.mixed {
			t.Errorf("%v: got %+v, mixed %t", c.versions, found, found.Mixed())
		}
	}
}

func TestAnAnswerThatIsNotAVersionIsAnError(t *testing.T) {
	if _, err := readServers(t.Context(), balanced(t, "latest")); err == nil {
		t.Error("accepted")
	}
	if _, err := readServers(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}); err == nil {
		t.Error("a server that does not answer was accepted")
	}
}

// old answers like API servers of Kubernetes 1.20, which have neither leases nor EndpointSlices of
// discovery.k8s.io/v1, behind a load balancer that forwards each connection to the next of
// versions. The Endpoints of the Service kubernetes have the given address, or do not exist.
func old(t *testing.T, endpoint string, versions ...string) *rest.Config {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		host, port, _ := strings.Cut(endpoint, ":")
		switch {
		case r.URL.Path == "/version":
			fmt.Fprintf(w, `{"gitVersion": %q}`, versions[int(requests.Add(1))%len(versions)])
		case strings.HasSuffix(r.URL.Path, "/leases"):
			fmt.Fprint(w, `{"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "items": []}`)
		case endpoint != "" && r.URL.Path == "/api/v1/namespaces/default/endpoints/kubernetes":
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Endpoints",
				"subsets": [{"addresses": [{"ip": %q}], "ports": [{"port": %s}]}]}`, host, port)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestVersionsOfOldAPIServersBehindOneAddress(t *testing.T) {
	hidden := strings.TrimPrefix(old(t, "", "v1.20.15").Host, "http://")
	for name, c := range map[string]struct {
		config *rest.Config
		oldest string
	}{
		"the addresses are reached":    {old(t, hidden, "v1.21.14"), "v1.20.15"},
		"the addresses do not answer":  {old(t, "127.0.0.1:1", "v1.21.14", "v1.20.15"), "v1.20.15"},
		"the addresses are not listed": {old(t, "", "v1.21.14", "v1.20.15"), "v1.20.15"},
		"one server":                   {old(t, "", "v1.21.14"), "v1.21.14"},
	} {
		found, err := readServers(t.Context(), c.config)
		if err != nil {
			t.Fatal(err)
		}
		if found.Oldest != c.oldest || found.Newest != "v1.21.14" {
			t.Errorf("%s: got %+v", name, found)
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
