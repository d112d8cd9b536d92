package capture_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// sink records the keys of the collected objects.
type sink struct{ keys map[string][]string }

func (s *sink) Add(resource, key string, _ []byte) error {
	s.keys[resource] = append(s.keys[resource], key)
	return nil
}
func (s *sink) Count(resource string) int       { return len(s.keys[resource]) }
func (s *sink) Truncate(resource string, n int) { s.keys[resource] = s.keys[resource][:n] }

// server answers like an API server of two kinds, except for the failures of a test. Real API
// servers are in test/apiserver/snapshot; this one fails when a test wants it to.
type server struct {
	mu       sync.Mutex
	requests []string
	// fail writes another answer and returns true, or returns false; n counts the requests of the path
	// from 1.
	fail func(w http.ResponseWriter, r *http.Request, n int) bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query := r.URL.Query()
	s.requests = append(s.requests,
		strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.URL.Path, query.Get("resourceVersion"),
			query.Get("resourceVersionMatch"), query.Get("continue"))))
	n := 0
	for _, request := range s.requests {
		if strings.HasPrefix(request+" ", r.URL.Path+" ") {
			n++
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if s.fail != nil && s.fail(w, r, n) {
		return
	}
	version := query.Get("resourceVersion")
	if version == "" {
		version = "7"
	}
	switch r.URL.Path {
	case "/apis":
		fmt.Fprint(w,
			`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"resource.k8s.io","versions":[{"groupVersion":"resource.k8s.io/v1alpha2","version":"v1alpha2"}],"preferredVersion":{"groupVersion":"resource.k8s.io/v1alpha2","version":"v1alpha2"}}]}`)
	case "/api/v1":
		fmt.Fprint(w,
			`{"kind":"APIResourceList","resources":[{"name":"namespaces","kind":"Namespace","verbs":["list"]},{"name":"nodes","kind":"Node","verbs":["list"]},{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]},{"name":"services","kind":"Service","namespaced":true,"verbs":["list"]}]}`)
	case "/apis/resource.k8s.io/v1alpha2":
		fmt.Fprint(w,
			`{"kind":"APIResourceList","resources":[{"name":"resourceclaims","kind":"ResourceClaim","namespaced":true,"verbs":["list"]}]}`)
	case "/api/v1/pods":
		if query.Get("continue") == "" {
			fmt.Fprintf(w,
				`{"metadata":{"resourceVersion":%q,"continue":"next"},"items":[{"metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"x"}}]}`, version)
			return
		}
		fmt.Fprint(w,
			`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","namespace":"n"}},{"metadata":{"name":"c","namespace":"n"},"status":{"phase":"Failed"}}]}`)
	case "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/services":
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":%q},"items":[{"metadata":{"name":"one","namespace":"n"}}]}`, version)
	default:
		answer(w, http.StatusNotFound, "NotFound", "")
	}
}

func answer(w http.ResponseWriter, code int, reason, details string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"because","reason":%q,"code":%d%s}`,
		reason, code, details)
}

// collectFrom collects from a server.
func collectFrom(t *testing.T, s *server) (*capture.Result, *sink, snapshot.PodCounts, error) {
	t.Helper()
	web := httptest.NewServer(s)
	defer web.Close()
	got := &sink{keys: map[string][]string{}}
	var pods snapshot.PodCounts
	result, err := capture.Cluster(t.Context(), &rest.Config{Host: web.URL, QPS: -1}, snapshot.Kinds(), got,
		capture.Options{Pods: &pods})
	return result, got, pods, err
}

// lists are the requests of a server for objects.
func (s *server) lists() []string {
	return slices.DeleteFunc(slices.Clone(s.requests),
		func(r string) bool { return strings.Count(r, "/") < 3 || strings.HasPrefix(r, "/apis/") })
}

func TestAllKindsAreReadAtTheVersionOfTheFirst(t *testing.T) {
	s := &server{}
	result, got, pods, err := collectFrom(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/api/v1/namespaces", "/api/v1/nodes 7 Exact", "/api/v1/pods 7 Exact", "/api/v1/pods   next",
		"/api/v1/services 7 Exact",
	}
	if diff := cmp.Diff(want, s.lists()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n/a", "n/b", "n/c"}, got.keys["pods"]); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if !result.Consistent || result.ResourceVersion != "7" ||
		pods != (snapshot.PodCounts{Running: 1, Pending: 1, Finished: 1}) {
		t.Errorf("result %+v, pods %+v", result, pods)
	}
	skipped := map[string]string{}
	for _, s := range result.Skipped {
		skipped[s.Resource] = s.Reason
	}
	if skipped["replicasets.apps"] != snapshot.NotServed ||
		skipped["resourceclaims.resource.k8s.io"] != snapshot.UnknownVersion+" (v1alpha2)" {
		t.Errorf("skipped %v", skipped)
	}
}

// on returns a failure of the requests of a path whose numbers are listed.
func on(path string, numbers []int,
	fail func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path != path || !slices.Contains(numbers, n) {
			return false
		}
		fail(w)
		return true
	}
}

func TestFailuresWhileReading(t *testing.T) {
	gone := func(w http.ResponseWriter) { answer(w, http.StatusGone, "Expired", "") }
	forbidden := func(w http.ResponseWriter) { answer(w, http.StatusForbidden, "Forbidden", "") }
	cases := map[string]struct {
		fail       func(http.ResponseWriter, *http.Request, int) bool
		consistent bool
		pods       int
		skipped    string
		err        string
	}{
		"compacted before the second page": {on("/api/v1/pods", []int{2}, gone), true, 3, "", ""},
		"compacted before the first page":  {on("/api/v1/pods", []int{1}, gone), true, 3, "", ""},
		"compacted again and again": {on("/api/v1/pods", []int{1, 2, 3, 4, 5, 6}, gone), false, 0, "",
			"compacted 3 times"},
		"another etcd": {on("/api/v1/pods", []int{1}, func(w http.ResponseWriter) {
			answer(w, http.StatusGatewayTimeout, "Timeout",
				`,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"x"}]}`)
		}), true, 3, "", ""},
		"unavailable for a moment": {on("/api/v1/pods", []int{2}, func(w http.ResponseWriter) {
			answer(w, http.StatusServiceUnavailable, "ServiceUnavailable", "")
		}), true, 3, "", ""},
		"connection lost in a page": {on("/api/v1/pods", []int{2}, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","namespace":"n"}},`)
		}), true, 3, "", ""},
		"no permission for services": {on("/api/v1/services", []int{1}, forbidden), true, 3, "services", ""},
		"no permission for pods":     {on("/api/v1/pods", []int{1}, forbidden), false, 0, "", "no permission"},
		"removed meanwhile": {on("/api/v1/services", []int{1}, func(w http.ResponseWriter) {
			answer(w, http.StatusNotFound, "NotFound", "")
		}), true, 3, "services", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{fail: tc.fail}
			result, got, pods, err := collectFrom(t, s)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || len(problem.Hints(err)) == 0 {
					t.Errorf("got %v with hints %q, want %q", err, problem.Hints(err), tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if result.Consistent != tc.consistent || len(got.keys["pods"]) != tc.pods ||
				pods.Running+pods.Pending+pods.Finished != tc.pods {
				t.Errorf("consistent %t, pods %q, counted %+v", result.Consistent, got.keys["pods"], pods)
			}
			if tc.skipped != "" && !slices.ContainsFunc(result.Skipped,
				func(s snapshot.Skipped) bool { return s.Resource == tc.skipped }) {
				t.Errorf("skipped %v, want %s", result.Skipped, tc.skipped)
			}
		})
	}
}

// Pods that were read at a later version than the other objects are reported.
func TestKindsOfAnotherVersionAreReported(t *testing.T) {
	fail := on("/api/v1/pods", []int{1}, func(w http.ResponseWriter) { answer(w, http.StatusGone, "Expired", "") })
	later := func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path == "/api/v1/pods" && n == 2 {
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"9"},"items":[]}`)
			return true
		}
		return fail(w, r, n)
	}
	result, _, _, err := collectFrom(t, &server{fail: later})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(result.Resources, func(r snapshot.Resource) bool { return r.Resource == "pods" })
	if result.Consistent || result.ResourceVersion != "7" || at < 0 || result.Resources[at].ResourceVersion != "9" {
		t.Errorf("result %+v", result)
	}
}
