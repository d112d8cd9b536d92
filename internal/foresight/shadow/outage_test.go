package shadow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/readonly"
)

// before starts a proxy for an API server, and returns a function that reads as the shadow does.
func before(t *testing.T, api http.Handler) (*proxy, func(path string) (*http.Response, string)) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	p, err := newProxy(&rest.Config{Host: server.URL}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p.names = names{observed: "default-scheduler", shadow: "packer"}
	close(p.ready)
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, func(path string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+p.Token())
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			text = fmt.Appendf(text, "[%v]", err)
		}
		return response, string(text)
	}
}

// status writes the answer of an API server that refuses a request.
func status(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code,
		map[int]string{403: "Forbidden", 410: "Expired"}[code], message)
}

// A client of the API server up to 1.21 begins again with a list if a watch fails.
func TestWatchesWaitForTheAPIServer(t *testing.T) {
	t.Parallel()
	watch, list, nodes := readonly.PodsPath+selector+"&watch=true&resourceVersion=9000", readonly.PodsPath+selector+
		"&limit=500", "/api/v1/nodes?watch=true"
	for _, tc := range []struct{ cluster, watch, list, nodes int }{
		{0, 200, 429, 200}, {503, 200, 503, 503}, {403, 200, 403, 403}, {410, 410, 410, 410}, {422, 422, 422, 422},
	} {
		t.Run(strconv.Itoa(tc.cluster), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			_, read := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch n := requests.Add(1); {
				// The transport itself repeats a request once if a connection was used before.
				case n > 2 && readonly.IsWatch(r.URL.Query()):
					fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10"}}}`)
				case tc.cluster == 0:
					panic(http.ErrAbortHandler) // as if it had ended
				default:
					status(w, tc.cluster, "of the API server")
				}
			}))
			for path, want := range map[string]int{watch: tc.watch, list: tc.list, nodes: tc.nodes} {
				requests.Store(0)
				response, body := read(path)
				if response == nil || response.StatusCode != want {
					t.Errorf("%s: %+v %s", path, response, body)
					continue
				}
				waited, passed := want == 200, strings.Contains(body, "BOOKMARK")
				if want == 429 && response.Header.Get("Retry-After") != "1" || waited != passed || waited != (requests.Load() > 2) {
					t.Errorf("%s: %d requests, Retry-After %q: %s", path, requests.Load(), response.Header.Get("Retry-After"), body)
				}
			}
		})
	}
}

func TestWatchesThatTheShadowEndsDoNotWait(t *testing.T) {
	p, _ := before(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	response, err := p.Get(ctx, readonly.PodsPath, url.Values{"watch": {"true"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			_ = response.Body.Close() // it was not expected
		}
		t.Errorf("the watch ended with %v", err)
	}
}

// The shadow must not take a part of a list for all of it.
func TestListsOfPodsArePassedCompletelyOrNotAtAll(t *testing.T) {
	answer := ""
	_, read := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answer) }))
	for given, want := range map[string]string{
		`{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"more"},"items":[]}`:     `{"kind":"PodList","metadata":{"continue":"more","resourceVersion":"7000"},"items":[]}`,
		`{"items":[{"spec":{"nodeName":"a"}},{"spec":{"nodeName":"b"}}],"metadata":{}}`:          `{"items":[{"spec":{"nodeName":"a"}},{"spec":{"nodeName":"b"}}],"metadata":{}}`,
		`{"items":[{"metadata":{"managedFields":[1],"name":"x"},"spec":{"schedulerName":"o"}}]}`: `{"items":[{"metadata":{"name":"x"},"spec":{"schedulerName":"o"}}]}`,
		`{"items":[{"spec":{"schedulerName":"default-scheduler"}}],"metadata":{}}`:               `{"items":[],"metadata":{}}`,
		`{"items":[{"spec":{"nodeName":"a"}},{"spec":{"nodeN`:                                    "EOF",
		`{"metadata":{}`: "EOF",
		`[]`:             "EOF",
	} {
		answer = given
		_, got := read(readonly.PodsPath + selector)
		if got = strings.ReplaceAll(got, "\n", ""); got != want && (want != "EOF" || !strings.Contains(got, want)) {
			t.Errorf("%s: %s", given, got)
		}
	}
}

func TestWhatTheShadowMayNotReadIsReported(t *testing.T) {
	forbidden := map[string]bool{"/api/v1/nodes": true, readonly.PodsPath: true,
		"/api/v1/namespaces/shop/persistentvolumeclaims/data": true}
	p, read := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forbidden[r.URL.Path] {
			status(w, 403, `x is forbidden: User "jane" cannot list resource "`+r.URL.Path[len("/api/v1/"):]+
				`" in API group "" at the cluster scope`)
			return
		}
		fmt.Fprint(w, `{"items":[]}`)
	}))
	readAll := func() {
		for _, path := range []string{"/api/v1/nodes?limit=500", readonly.PodsPath + selector + "&limit=500",
			"/api/v1/services?limit=500", "/api/v1/namespaces/shop/persistentvolumeclaims/data"} {
			read(path)
		}
	}
	readAll()
	if err := p.Refused(0); err == nil ||
		err.Error() != "read /api/v1/nodes for the scheduler: no permission: user jane cannot list nodes at cluster scope "+
			"(and 1 more)" {
		t.Error(err)
	}
	if err := p.Refused(refusalTime); err != nil {
		t.Errorf("at once: %v", err)
	}
	clear(forbidden)
	readAll()
	if err := p.Refused(0); err != nil {
		t.Errorf("with permissions: %v", err)
	}
}

// A pod gets its volume before it is bound, which the shadow cannot wait for.
func TestTheNodeOfAVolumeIsADecision(t *testing.T) {
	p, s := start(t, &cluster{})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data",
		Annotations: map[string]string{selectedNode: "b"}}}
	failed := fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulerError","message":"binding volumes"}]}}`)
	for _, tc := range []struct {
		name string
		put  string
		want answer
	}{
		{"a claim", "/api/v1/namespaces/shop/persistentvolumeclaims/data", answer{node: "b"}},
		{"a volume that exists", "/api/v1/persistentvolumes/disk", answer{reason: "binding volumes", undecided: true}},
	} {
		q := &question{namespace: "shop", name: "web", answer: make(chan answer, 1)}
		p.judge.asked = q
		body := protobuf(t, claim)
		if strings.Contains(tc.put, "disk") {
			body = protobuf(t, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}})
		}
		if code, _ := s.do(http.MethodPut, tc.put, runtime.ContentTypeProtobuf, body); code != 409 {
			t.Errorf("%s: %d", tc.name, code)
		}
		s.do(http.MethodPatch, "/api/v1/namespaces/shop/pods/web/status", "application/strategic-merge-patch+json", failed)
		if got := <-q.answer; got != tc.want {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestEvictionsOfPodsThatAreBeingDeletedAreNotReported(t *testing.T) {
	p, s := start(t, &cluster{})
	victim := podJSON("victim", "default-scheduler", "a", 3, "")
	victim["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	p.judge.bound(parsePod(victim))
	for _, name := range []string{"later", "gone", "before", "other"} {
		p.judge.bound(parsePod(podJSON(name, "default-scheduler", "a", 3, "")))
	}
	p.judge.forget(parsePod(podJSON("before", "default-scheduler", "a", 3, "")))
	for _, name := range []string{"victim", "later", "gone", "before", "other"} {
		s.do(http.MethodDelete, "/api/v1/namespaces/shop/pods/"+name, "", nil)
	}
	later := podJSON("later", "default-scheduler", "a", 3, "")
	later["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	p.judge.bound(parsePod(later))
	p.judge.forget(parsePod(podJSON("gone", "default-scheduler", "a", 4, "")))
	var r Report
	if p.judge.report(&r); len(r.Evictions) != 1 || r.Evictions[0].Name != "other" {
		t.Errorf("%+v", r.Evictions)
	}
}
