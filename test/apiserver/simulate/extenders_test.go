//go:build linux

package simulate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// counted returns an address that counts the requests to another one.
func counted(t *testing.T, to string) (address string, requests *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int64{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// The extenders and the flags of a file take part in a simulation, or are named.
func TestExtendersAndFlagsOfAFileAreSimulated(t *testing.T) {
	t.Parallel()
	address, requests := counted(t, extender(t, "empty", ""))
	file := func(extenders, args string) string {
		return run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf("apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\n"+
			"metadata: {name: quota}\nspec:\n  replicas: 2\n  extenders: [{%s}]\n  args: [%s]\n", extenders, args))
	}
	called := file("name: e, urlPrefix: '"+address+"', filterVerb: filter, ignorable: false, nodeCacheCapable: true",
		"--feature-gates=DefaultPodTopologySpread=true, --bind-address=0.0.0.0")
	snapshot := snapshotOf(t, node("half", 4, "", "")+node("empty", 4, "", "")+
		pod("running", "2", "", "nodeName: half", "phase: Running")+pod("web", "1", "", "", ""))

	r := simulateSnapshot(t, "pending", snapshot, "-f", called)
	equal(t, "placements", []report.Placement{{Namespace: "shop", Name: "web", Node: "half"}}, r.Placements)
	notes := strings.Join(r.Notes, "\n")
	if requests.Load() == 0 || !strings.Contains(notes, "spec.replicas") || !strings.Contains(notes, "--bind-address") {
		t.Errorf("%d requests, notes:\n%s", requests.Load(), notes)
	}

	requests.Store(0)
	expected := run.WriteFile(t, "test.yaml", "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\n"+
		"expect: [{name: the extender refuses, pod: shop/web, node: half}]\n")
	run.PMKSched(t, "test", "--snapshot", snapshot, "--branch", apiserver.Release, "--with-scheduler", called, expected).
		OK(t).Prints(t, "1 of 1 expectation is met", "spec.replicas")
	if requests.Load() == 0 {
		t.Error("test: no request comes")
	}

	for want, broken := range map[string]string{
		"unrecognized feature gate: NoSuchGate": file("name: e, urlPrefix: '"+address+"', filterVerb: filter, ignorable: true",
			"--feature-gates=NoSuchGate=true"),
		"error: call extender http://127.0.0.1:1, without which": file(
			"name: e, urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, ignorable: false", ""),
	} {
		run.PMKSched(t, "simulate", "pending", "--snapshot", snapshot, "--branch", apiserver.Release, "-f", broken).
			Fails(t, 1, want)
	}
}
