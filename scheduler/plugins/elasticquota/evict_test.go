package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// evictionServer answers evictions of pods with status codes, by version and pod, and records the
// requests: the version, the pod, its UID, and whether it is a dry run.
func evictionServer(t *testing.T, codes map[string]int) (*rest.Config, *[]string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			APIVersion    string `json:"apiVersion"`
			DeleteOptions struct {
				DryRun        []string          `json:"dryRun"`
				Preconditions map[string]string `json:"preconditions"`
			} `json:"deleteOptions"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		pod := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/b/pods/"), "/eviction")
		requests = append(requests, fmt.Sprint(body.APIVersion, " ", pod, " ", body.DeleteOptions.Preconditions["uid"], " ",
			body.DeleteOptions.DryRun))
		code, ok := codes[body.APIVersion+" "+pod]
		if !ok {
			code = http.StatusCreated
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code == http.StatusCreated {
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
			return
		}
		status := map[int]string{http.StatusTooManyRequests: "TooManyRequests", http.StatusNotFound: "NotFound",
			http.StatusBadRequest: "BadRequest", http.StatusForbidden: "Forbidden"}[code]
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": "answer", "code": %d}`, status, code)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, &requests
}

func TestEvictionsAreTriedBeforeTheyAreDone(t *testing.T) {
	config, requests := evictionServer(t, map[string]int{
		"policy/v1 gone":      http.StatusNotFound,
		"policy/v1 refused":   http.StatusTooManyRequests,
		"policy/v1 forbidden": http.StatusForbidden,
		// An API server before 1.22 knows v1beta1 only.
		"policy/v1 old":           http.StatusBadRequest,
		"policy/v1 unknown":       http.StatusBadRequest,
		"policy/v1beta1 unknown":  http.StatusBadRequest,
		"policy/v1beta1 tooOften": http.StatusTooManyRequests,
		"policy/v1 tooOften":      http.StatusBadRequest,
	})
	e, err := newEviction(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := func(names ...string) (list []*corev1.Pod) {
		for _, name := range names {
			list = append(list, plugintest.NewPod("b", name, nil))
		}
		return list
	}
	for _, c := range []struct {
		pods                       []string
		refused, tryErr, evictErrs string
		requests                   []string
	}{
		{[]string{"gone", "free"}, "", "<nil>", "<nil> <nil>", []string{
			"policy/v1 gone b/gone [All]", "policy/v1 free b/free [All]",
			"policy/v1 gone b/gone []", "policy/v1 free b/free []"}},
		{[]string{"refused", "free"}, "refused", "<nil>", "evict pod b/refused: answer <nil>", []string{
			"policy/v1 refused b/refused [All]",
			"policy/v1 refused b/refused []", "policy/v1 free b/free []"}},
		{[]string{"forbidden", "free"}, "", "evict pod b/forbidden: answer", "evict pod b/forbidden: answer <nil>", []string{
			"policy/v1 forbidden b/forbidden [All]",
			"policy/v1 forbidden b/forbidden []", "policy/v1 free b/free []"}},
		{[]string{"old"}, "", "<nil>", "<nil>", []string{
			"policy/v1 old b/old [All]", "policy/v1beta1 old b/old [All]",
			"policy/v1 old b/old []", "policy/v1beta1 old b/old []"}},
		{[]string{"unknown"}, "", "evict pod b/unknown: answer", "evict pod b/unknown: answer", []string{
			"policy/v1 unknown b/unknown [All]", "policy/v1beta1 unknown b/unknown [All]",
			"policy/v1 unknown b/unknown []", "policy/v1beta1 unknown b/unknown []"}},
		{[]string{"tooOften"}, "tooOften", "<nil>", "evict pod b/tooOften: answer", []string{
			"policy/v1 tooOften b/tooOften [All]", "policy/v1beta1 tooOften b/tooOften [All]",
			"policy/v1 tooOften b/tooOften []", "policy/v1beta1 tooOften b/tooOften []"}},
	} {
		*requests = nil
		victim, err := e.tryAll(t.Context(), pods(c.pods...))
		refused := ""
		if victim != nil {
			refused = victim.Name
		}
		var errs []string
		for _, pod := range pods(c.pods...) {
			errs = append(errs, fmt.Sprint(e.evict(t.Context(), pod)))
		}
		got := []interface{}{refused, fmt.Sprint(err), strings.Join(errs, " "), *requests}
		if diff := cmp.Diff([]interface{}{c.refused, c.tryErr, c.evictErrs, c.requests}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.pods, diff)
		}
	}
}

func TestEvictionFailsWithoutAnAPIServer(t *testing.T) {
	e, err := newEviction(&rest.Config{Host: "http://apiserver.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.evict(t.Context(), plugintest.NewPod("b", "p", nil)); err == nil {
		t.Error("no error")
	}
}

func TestEvictionsAreCountedAndReported(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.handle.Level = 2
	w.run("n-0", "b", "b", 8, "1", 0)
	for _, pod := range []*corev1.Pod{w.newPod("a", "same", "1", 0), w.newPod("a", "higher", "2", 1)} {
		if got := w.postFilter(pod, nil); !strings.HasPrefix(got, "n-0 b-") {
			t.Errorf("got %q", got)
		}
	}
	if diff := cmp.Diff([]string{
		"Normal Preempted Preempting: Evicted (reclaim) for pod a/same of quota a",
		"Normal Preempted Preempting: Evicted (priority) for pod a/higher of quota a",
		"Normal Preempted Preempting: Evicted (priority) for pod a/higher of quota a",
	}, w.handle.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"ElasticQuota evicts a pod victim=b/b-7 node=n-0 for=a/same quota=a reason=reclaim",
		"ElasticQuota evicts a pod victim=b/b-6 node=n-0 for=a/higher quota=a reason=priority",
		"ElasticQuota evicts a pod victim=b/b-5 node=n-0 for=a/higher quota=a reason=priority",
	}, w.handle.Lines()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	families, err := w.handle.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "pmk_sched_elasticquota_evictions_total" {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"reclaim": 1, "priority": 2}, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestRefusedEvictionsAreBounded(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	w.run("n-0", "b", "b", 32, "250m", 0) // half of them borrow
	for i := range 32 {
		w.evicted.refused[fmt.Sprint("b-", i)] = true
	}
	state, pod := plugintest.NewState(), w.newPod("a", "new", "250m", 0)
	if _, status := w.plugin.PreFilter(context.Background(), state, pod); status != nil {
		t.Fatal(status)
	}
	if node, status := w.plugin.PostFilter(t.Context(), state, pod, rejections{}); node != "" || status == nil {
		t.Errorf("got node %q, %v", node, status)
	}
	if w.evicted.tries != mostRefusals {
		t.Errorf("%d evictions were tried, want %d", w.evicted.tries, mostRefusals)
	}
}
