package extender

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// policy is a plugin; tests embed it in a struct with one or more of the types below.
type policy string

func (p policy) Name() string { return string(p) }

type filtering func(pod *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status

func (f filtering) Filter(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	n scheduler.NodeInfo) *scheduler.Status {
	return f(pod, n)
}

type scoring func(n scheduler.NodeInfo) (int64, *scheduler.Status)

func (f scoring) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	return f(n)
}

type preFiltering func(ctx context.Context, s scheduler.State, pod *corev1.Pod) (*scheduler.PreFilterResult,
	*scheduler.Status)

func (f preFiltering) PreFilter(ctx context.Context, s scheduler.State,
	pod *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	return f(ctx, s, pod)
}

type filterPolicy struct {
	policy
	filtering
}

type scorePolicy struct {
	policy
	scoring
}

type preFilterPolicy struct {
	policy
	preFiltering
}

func filterBy(name string, f filtering) scheduler.Plugin { return filterPolicy{policy(name), f} }
func scoreBy(name string, f scoring) scheduler.Plugin    { return scorePolicy{policy(name), f} }

// labelled rejects nodes with the label "no"; those with the value "never" as unresolvable.
func labelled() scheduler.Plugin {
	busy, never := scheduler.Unschedulable("is labelled no"), scheduler.Unresolvable("is labelled never")
	return filterBy("Labelled", func(_ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
		switch value, found := n.Node().Labels["no"]; {
		case found && value == "never":
			return never
		case found:
			return busy
		}
		return nil
	})
}

// numbered scores a node by its label "score".
func numbered() scheduler.Plugin {
	return scoreBy("Numbered", func(n scheduler.NodeInfo) (int64, *scheduler.Status) {
		var score int64
		_, err := fmt.Sscan(n.Node().Labels["score"], &score)
		return score, scheduler.Error(err)
	})
}

func newNode(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

func newPod(name, node string, milliCPU int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)},
			}}}},
	}
}

// filledCache returns a cache that received the objects as from informers.
func filledCache(t testing.TB, objects ...interface{}) *Cache {
	t.Helper()
	c := &Cache{log: zap.NewNop(), nodes: map[string]*node{}, on: map[types.UID]string{}, life: t.Context()}
	var err error
	if c.metrics, err = newCacheMetrics(prometheus.NewRegistry(), c); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		c.setNode(object)
		c.setPod(object, true)
	}
	return c
}

// identified treats every client as one with a certificate.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
		h.ServeHTTP(w, r)
	})
}

// serveWith starts a server of all verbs with policies and a cache; with a nil cache it runs
// without a cluster.
func serveWith(t testing.TB, c *Cache, o Options, plugins ...scheduler.Plugin) (*httptest.Server, *Extender) {
	t.Helper()
	if o.Handle == nil {
		handle, err := NewHandle(HandleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		handle.cache = c
		o.Handle = handle
	}
	for _, p := range plugins {
		o.Policies = append(o.Policies, Policy{Plugin: p})
	}
	if o.Verbs == nil {
		o.Verbs = append(DefaultVerbs(), VerbBind)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(identified(e.Handler()))
	t.Cleanup(server.Close)
	server.Client().Timeout = patience
	return server, e
}

// patience is how long a test waits for something before it fails.
const patience = 2 * time.Minute

// receive returns the next value of a channel, and fails the test if there is none for too long.
func receive[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatalf("waited in vain until %s", what)
	}
	return value
}

// post sends a request as the scheduler does: an encoded value, or bytes unchanged.
func post(t testing.TB, server *httptest.Server, verb string, request interface{}) (status int, body []byte) {
	t.Helper()
	raw, ok := request.(string)
	if !ok {
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(text)
	}
	response, err := server.Client().Post(server.URL+"/"+verb, "application/json", bytes.NewReader([]byte(raw)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// ask sends a request, expects success and decodes the answer.
func ask[T any](t testing.TB, server *httptest.Server, verb string, request interface{}) T {
	t.Helper()
	status, body := post(t, server, verb, request)
	var into T
	if status != http.StatusOK {
		t.Fatalf("%s answers %d: %s", verb, status, body)
	}
	if err := json.Unmarshal(body, &into); err != nil {
		t.Fatalf("%s answers %s: %v", verb, body, err)
	}
	return into
}
