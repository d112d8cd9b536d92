package customresource

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event is a change of a rack, as a watch reports it.
type event struct {
	Type    string                 `json:"type"`
	Object  map[string]interface{} `json:"object"`
	version int
}

// server is an API server with the resource racks.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	status  int // of all responses; the resource exists while it is 0
	version int
	oldest  int // the first version from which a watch can start
	racks   map[string]map[string]interface{}
	history []event
	changed chan struct{} // closed after a change
	broken  chan struct{} // closed to end the watches
	paths   []string
}

func newServer(t *testing.T, status int) *server {
	s := &server{status: status, racks: map[string]map[string]interface{}{}, changed: make(chan struct{}),
		broken: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// change makes a change without a client in between.
func (s *server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// put adds or updates a rack.
func (s *server) put(name string, height interface{}) {
	kind := "ADDED"
	if s.racks[name] != nil {
		kind = "MODIFIED"
	}
	s.version++
	s.racks[name] = map[string]interface{}{
		"apiVersion": "example.com/v1", "kind": "Rack", "spec": map[string]interface{}{"height": height},
		"metadata": map[string]interface{}{"namespace": "lab", "name": name, "resourceVersion": strconv.Itoa(s.version)},
	}
	s.history = append(s.history, event{kind, s.racks[name], s.version})
}

func (s *server) remove(name string) {
	s.version++
	s.history = append(s.history, event{"DELETED", s.racks[name], s.version})
	delete(s.racks, name)
}

// disconnect ends the watches.
func (s *server) disconnect() {
	close(s.broken)
	s.broken = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion")) // an empty one is 0
	watch := query.Get("watch") != ""
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	status, broken := s.status, s.broken
	switch {
	case status != 0:
	case query.Get("sendInitialEvents") != "": // as before 1.32, and by default before 1.34
		status = http.StatusUnprocessableEntity
	case watch && from < s.oldest:
		status = http.StatusGone
	}
	list := map[string]interface{}{"apiVersion": "example.com/v1", "kind": "RackList",
		"metadata": map[string]interface{}{"resourceVersion": strconv.Itoa(s.version)}}
	items := []interface{}{}
	for _, rack := range s.racks {
		items = append(items, rack)
	}
	list["items"] = items
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case status != 0:
		reasons := map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status),
			Reason: reasons[status], Message: "refused",
		})
	case watch:
		s.watch(w, r, from, broken)
	default:
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, from int, broken chan struct{}) {
	for {
		s.mu.Lock()
		history, changed := s.history, s.changed
		s.mu.Unlock()
		for _, e := range history {
			if e.version > from {
				from = e.version
				_ = json.NewEncoder(w).Encode(e)
			}
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-broken:
			return
		case <-changed:
		}
	}
}

func (s *server) requested(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.paths {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}
