package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// server records the requests for objects, and answers them like an API server that sets UIDs. Real
// API servers are in test/apiserver/simulate.
type server struct {
	mu       sync.Mutex
	requests []string
	// exists are the paths at which objects cannot be created because they exist.
	exists map[string]bool
	refuse string // a path at which creating is refused
	forbid string // a path at which creating is forbidden
	// created are the paths of requests that are no trials.
	created []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis":
		fmt.Fprint(w,
			`{"kind":"APIGroupList","groups":[{"name":"policy","versions":[{"groupVersion":"policy/v1","version":"v1"}]}]}`)
		return
	case "/api/v1":
		fmt.Fprint(w,
			`{"kind":"APIResourceList","resources":[{"name":"namespaces"},{"name":"nodes"},{"name":"pods"},{"name":"persistentvolumeclaims"},{"name":"persistentvolumes"}]}`)
		return
	case "/apis/policy/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"poddisruptionbudgets"}]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == "" {
		s.created = append(s.created, r.URL.Path)
	}
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	switch {
	case r.Method == http.MethodPost && s.exists[r.URL.Path]:
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409}`)
	case r.Method == http.MethodPost && r.URL.Path == s.forbid:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","message":"pods is forbidden: too much","code":403}`)
	case r.Method == http.MethodPost && r.URL.Path == s.refuse:
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Invalid","message":"spec.x: Required value","code":422}`)
	default:
		fmt.Fprintf(w, `{"metadata":{"uid":"new-%d"}}`, len(s.requests))
	}
}

// loadInto loads objects in their order, and returns the loader.
func loadInto(t *testing.T, s *server, objects ...string) (*load.Loader, error) {
	t.Helper()
	web := httptest.NewServer(s)
	defer web.Close()
	l, err := load.New(t.Context(), &rest.Config{Host: web.URL, QPS: -1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := snapshot.Kinds()
	for _, text := range objects {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		kind, version := snapshot.Find(kinds, o["apiVersion"].(string), o["kind"].(string))
		if err := l.Add(t.Context(), kind, version, o); err != nil {
			return l, err
		}
	}
	return l, l.Wait(t.Context())
}

func TestObjectsAreCreatedInTheOrderOfTheirKinds(t *testing.T) {
	s := &server{exists: map[string]bool{"/api/v1/namespaces": true}}
	l, err := loadInto(t, s,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","labels":{"a":"b"}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"kube-system","uid":"old-pod"},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`,
		`{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"kube-system"},"spec":{}}`,
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"kube-system","uid":"old-claim","ownerReferences":[{"uid":"old-pod"}]}}`,
		`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"csi":{"driver":"d"},"claimRef":{"uid":"old-claim"}}}`,
		`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"d"}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`POST /api/v1/namespaces {"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"a":"b"},"name":"kube-system"}}`,
		`GET /api/v1/namespaces/kube-system`,
		`PATCH /api/v1/namespaces/kube-system {"metadata":{"labels":{"a":"b"}}}`,
		`POST /api/v1/namespaces/kube-system/pods {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"kube-system"},"spec":{"nodeName":"n"}}`,
		`PATCH /api/v1/namespaces/kube-system/pods/p/status {"status":{"phase":"Succeeded"}}`,
		`POST /apis/policy/v1/namespaces/kube-system/poddisruptionbudgets {"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"kube-system"},"spec":{}}`,
		`POST /api/v1/namespaces/kube-system/persistentvolumeclaims {"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"kube-system","ownerReferences":[{"uid":"new-4"}]}}`,
		`POST /api/v1/persistentvolumes {"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"claimRef":{"uid":"new-7"},"csi":{"driver":"d"}}}`,
	}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"deviceclasses.resource.k8s.io": 1}, l.Skipped()); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestMissingNamespacesAreCreatedAndDeletedObjectsAreDeleted(t *testing.T) {
	s := &server{}
	_, err := loadInto(t, s,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"}}`,
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	const options = `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":604800}`
	want := []string{
		`POST /api/v1/namespaces {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`POST /api/v1/namespaces/shop/pods {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"nodeName":"n"}}`,
		`DELETE /api/v1/namespaces/shop/pods/p ` + options,
		`POST /api/v1/namespaces/shop/persistentvolumeclaims {"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop"}}`,
		`PATCH /api/v1/namespaces/shop/persistentvolumeclaims/c {"metadata":{"finalizers":["pmk-sched.io/snapshot"]}}`,
		`DELETE /api/v1/namespaces/shop/persistentvolumeclaims/c ` + options,
	}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestARefusedObjectIsNamed(t *testing.T) {
	s := &server{refuse: "/api/v1/nodes"}
	_, err := loadInto(t, s, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`,
		`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{}}`)
	if err == nil || !strings.Contains(err.Error(), "create Node/n") || !strings.Contains(err.Error(), "Required value") {
		t.Errorf("got %v", err)
	}
	if len(s.requests) != 1 {
		t.Errorf("requests %q", s.requests)
	}
}

// A claim that admission refuses does not end the simulation: its pods wait for it.
func TestRefusedObjectsAreLeftOut(t *testing.T) {
	s := &server{forbid: "/api/v1/namespaces/shop/persistentvolumeclaims"}
	l, err := loadInto(t, s, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop"}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"PersistentVolumeClaim/shop/c is not created: pods is forbidden: too much"}
	if diff := cmp.Diff(want, l.Refused()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
