package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd/api"
)

// hostile returns a client of a server with those answers.
func hostile(t *testing.T, answer http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: s.URL}
	config.Contexts["c"] = &api.Context{Cluster: "c"}
	config.CurrentContext = "c"
	cfg, err := Connect(ConnectOptions{Loaded: config})
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func TestAnswersOfAPIServersAreBounded(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	// write ends with the first error: the client has closed the connection.
	write := func(w http.ResponseWriter, begin, more, end string, times int) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, begin)
		for i := 0; i < times && err == nil; i++ {
			_, err = io.WriteString(w, more)
		}
		_, _ = io.WriteString(w, end)
	}
	const begin, end = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{}`, "]}"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an endless answer": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, begin, strings.Repeat(" ", 1<<20), end, 1<<10)
		}, "an answer of more than 64 MiB"},
		"many small objects": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, begin, strings.Repeat(",{}", 1<<10), end, 1<<10)
		}, "a list of more than 50000 items"},
		"many values": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, begin+`,{"spec":{"containers":[{"name":"\\\"]}"}`, strings.Repeat(",{}", 1<<10), end, 1<<10)
		}, "an answer with more than 524288 values"},
		"another format": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			_, _ = io.WriteString(w, "k8s\x00")
		}, "in the format application/vnd.kubernetes.protobuf"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "redirects to another host"},
		"a list without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"again"}}`)
		}, "a list without end: /api/v1/pods, page 2001"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := hostile(t, c.answer).CoreV1().Pods("")
			var last error
			pages := 0
			for _, err := range Pages(t.Context(), pods.List, metav1.ListOptions{Limit: 500}) {
				if last = err; pages > 2*maxPages {
					t.Fatal("it does not end")
				}
				pages++
			}
			var bound *BoundError
			if !errors.As(last, &bound) || !strings.Contains(bound.Error(), c.want) || Transient(last) || bound.Hint() == "" {
				t.Errorf("after %d pages: %v", pages, last)
			}
		})
	}
	if elsewhere > 0 {
		t.Errorf("the other host got %d requests", elsewhere)
	}
}

// An API server that is asked for the same list again begins a new one.
func TestListsThatEndMayBeReadAgain(t *testing.T) {
	b := boundAnswers(roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	for i := range 3 * maxPages {
		address := "https://c/api/v1/pods?limit=500"
		if i%100 > 0 {
			address += fmt.Sprintf("&continue=%d", i)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := b.RoundTrip(request)
		if err != nil {
			t.Fatal(i, err)
		}
		_ = answer.Body.Close()
	}
}

func TestListsOfLongAgoAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bounded{lists: map[string]list{}}
		for i := range 3 {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				fmt.Sprintf("https://c/api/v1/pods?limit=1&fieldSelector=metadata.name%%3D%d", i), nil)
			if err == nil {
				err = b.countPage(request)
			}
			if err != nil || len(b.lists) != 1 {
				t.Errorf("%d lists are kept: %v", len(b.lists), err)
			}
			time.Sleep(2*maxListTime + time.Second)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRetryAfterIsBounded(t *testing.T) {
	asked := make(chan struct{}, 100)
	pods := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
	}).CoreV1().Pods("")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = pods.List(ctx, metav1.ListOptions{}) }() // ends with the context
	for range 2 {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("the client does not ask again")
		}
	}
}

// Watches and logs are read as they come, and have no bound.
func TestStreamsAreNotBounded(t *testing.T) {
	kube := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		for range maxAnswer>>20 + 1 {
			_, _ = io.WriteString(w, strings.Repeat("line of text 16\n", 1<<16))
		}
	})
	stream, err := kube.CoreV1().Pods("a").GetLogs("b", &corev1.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if n, err := io.Copy(io.Discard, stream); err != nil || n <= maxAnswer {
		t.Errorf("read %d bytes: %v", n, err)
	}
}

func TestBinaryFormatsAreNotAskedFor(t *testing.T) {
	for accept, want := range map[string]string{
		"application/json": "application/json",
		"application/vnd.kubernetes.protobuf;as=Table;v=v1,application/json;as=Table;v=v1": "application/json;as=Table;v=v1",
		"application/vnd.kubernetes.protobuf":                                              "application/json",
		"":                                                                                 "",
	} {
		var got string
		b := boundAnswers(roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Accept")
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}))
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		r.Header.Set("Accept", accept)
		answer, err := b.RoundTrip(r)
		if err != nil || got != want || r.Header.Get("Accept") != accept {
			t.Errorf("%q: asked for %q, %v, want %q", accept, got, err, want)
			continue
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
