package session

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/health"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

func TestDriftOfTheNodesFilesIsAFindingWithTheDiff(t *testing.T) {
	f := nodeFinding(&replace.DriftError{Here: &replace.HereStatus{Node: "node-1", Drift: []replace.Drift{{Path: "/manifest", What: "edited", Diff: "-a\n+b\n"}}}})
	if f.Code != health.NodeFilesDrifted || f.Name != "node-1" || strings.Contains(f.Text, "\n") || f.Detail != "/manifest: edited\n-a\n+b" || f.Hint == "" {
		t.Errorf("got %+v", f)
	}
}

func TestInterruptedReplacementIsAFinding(t *testing.T) {
	f := nodeFinding(&replace.DriftError{Here: &replace.HereStatus{Node: "node-1", State: staticpod.Started, Step: "swap"}})
	if f.Code != health.ReplaceUnfinished || !strings.Contains(f.Text, `stopped at step "swap"`) {
		t.Errorf("got %+v", f)
	}
}

func TestCounterCountsRequests(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var requests atomic.Int64
	client := http.Client{Transport: counter{http.DefaultTransport, &requests}}
	for range 3 {
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 3 {
		t.Errorf("counted %d requests", requests.Load())
	}
}
