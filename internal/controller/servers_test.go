package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
