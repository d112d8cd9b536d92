package kubelet

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestThePodsAreNotListedFromTheWatchCache(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lists := make(chan url.Values, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.URL.Path != "/api/v1/pods":
			http.NotFound(w, r)
		case query.Get("watch") == "" || query.Get("watch") == "false":
			select {
			case lists <- query:
			default:
			}
			answer(w, http.StatusOK,
				`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"}}`)
		default: // API servers before 1.32 do not send the initial events of a watch
			answer(w, http.StatusUnprocessableEntity,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`)
		}
	}))
	defer server.Close()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = Start(ctx, &rest.Config{Host: server.URL}, Options{}) // until ctx ends: nothing but pods is served
	}()
	select {
	case query := <-lists:
		if query.Get("resourceVersion") == "0" {
			t.Errorf(
				"the first list of pods is %v: expected no resourceVersion=0, which the watch cache may answer with old pods",
				query)
		}
	case <-ctx.Done():
		t.Error("the pods were not listed within a minute")
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("Start does not end with its context")
	}
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
