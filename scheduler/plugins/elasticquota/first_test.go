package elasticquota

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// A scheduler that was restarted must not place pods beyond the quotas that it has not read yet.
func TestTheFirstPodWaitsForTheElasticQuotas(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "": // as before 1.32
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`))
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		default:
			<-release
			_, _ = w.Write([]byte(`{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuotaList",
				"metadata": {"resourceVersion": "1"}, "items": [{
					"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
					"metadata": {"namespace": "team", "name": "none"}, "spec": {"max": {"cpu": 0}}}]}`))
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // ends the watch, for which Close waits
	h := &plugintest.Handle{Config: &rest.Config{Host: server.URL}}
	p, err := New(ctx, scheduler.NewArguments(nil), h)
	if err != nil {
		t.Fatal(err)
	}
	decided := make(chan *scheduler.Status)
	go func() {
		pod := plugintest.NewPod("team", "first", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
		_, status := p.PreFilter(t.Context(), plugintest.NewState(), pod)
		decided <- status
	}()
	select {
	case status := <-decided:
		t.Fatalf("decided without the quotas: %v", status)
	case release <- struct{}{}: // the server has the request for the list
	}
	if status := <-decided; !strings.Contains(status.String(), "quota team/none: no more than 0 of cpu") {
		t.Errorf("got %v", status)
	}
}
