package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// recordedObjects are the objects of a snapshot as JSON, in their order.
type recordedObjects []string

func (r recordedObjects) Each(do func(kind *snapshot.Kind, version string, o map[string]any) error) error {
	for _, text := range r {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			return err
		}
		kind, version := snapshot.FindOf(snapshot.Kinds(), o)
		if err := do(kind, version, o); err != nil {
			return err
		}
	}
	return nil
}

// stored returns an object as an API server has created it.
func stored(kind, name, more string) string {
	namespace := `"namespace":"shop",`
	if kind == "Node" {
		namespace = ""
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{%s"name":%q,"uid":"uid-of-%s",`+
		`"creationTimestamp":"2026-01-01T00:00:00Z"%s}`, kind, namespace, name, name, more)
}

// cluster is an API server and a scheduler, without processes: the scheduler binds the waiting pods
// to one node when its metrics are read. Real ones are in test/apiserver/simulate.
type cluster struct {
	api, scheduler *httptest.Server

	mu sync.Mutex
	// events are what happened, in its order.
	events []string
	nodes  []map[string]any
	pods   []map[string]any
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	c.api, c.scheduler = httptest.NewServer(http.HandlerFunc(c.serve)), httptest.NewServer(http.HandlerFunc(c.metrics))
	t.Cleanup(c.api.Close)
	t.Cleanup(c.scheduler.Close)
	return c
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var answer any = map[string]any{}
	switch r.URL.Path {
	case "/api/v1":
		answer = map[string]any{"resources": []map[string]any{{"name": "namespaces"}, {"name": "nodes"}, {"name": "pods"},
			{"name": "persistentvolumeclaims"}}}
	case "/api/v1/nodes":
		answer = map[string]any{"kind": "NodeList", "apiVersion": "v1", "items": c.nodes}
	case "/api/v1/pods":
		answer = map[string]any{"kind": "PodList", "apiVersion": "v1", "items": c.selected(r.FormValue("fieldSelector"))}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// selected returns the pods that a field selector selects.
func (c *cluster) selected(selector string) []map[string]any {
	return slices.DeleteFunc(slices.Clone(c.pods), func(pod map[string]any) bool {
		return selector == "spec.nodeName=" && scenario.NodeOf(pod) != ""
	})
}

func (c *cluster) metrics(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bound := 0
	for _, pod := range c.selected("spec.nodeName=") {
		pod["spec"].(map[string]any)["nodeName"] = "a"
		bound++
	}
	if bound == 0 { // the scheduler reads the objects
		fmt.Fprintf(w, "scheduler_cache_size{type=\"nodes\"} %d\nscheduler_cache_size{type=\"pods\"} %d\n", len(c.nodes),
			len(c.pods))
		return
	}
	fmt.Fprintf(w, "scheduler_schedule_attempts_total{result=\"scheduled\"} %d\n", bound)
}

func (c *cluster) Config() *rest.Config { return &rest.Config{Host: c.api.URL, QPS: -1} }

func (c *cluster) Put(_ context.Context, objects []apiserver.Object) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range objects {
		c.events = append(c.events, "create "+o.Key)
		read, err := snapshot.Decode(o.Value)
		if err != nil {
			return 0, err
		}
		switch kind, _, _ := strings.Cut(o.Key, "/"); kind {
		case "minions":
			c.nodes = append(c.nodes, read)
		case "pods":
			c.pods = append(c.pods, read)
		}
	}
	return 1, nil
}

func (c *cluster) Remove(context.Context, []string) error { return nil }

func (c *cluster) WriteKubeconfig(file, _ string) error { return os.WriteFile(file, nil, 0o600) }

func (c *cluster) WriteSchedulerKubeconfig(file string) error { return os.WriteFile(file, nil, 0o600) }

// recorder records the calls to an observer among the events of a cluster.
type recorder struct {
	Unobserved
	cluster *cluster
}

func (o recorder) note(event string) error {
	o.cluster.mu.Lock()
	defer o.cluster.mu.Unlock()
	o.cluster.events = append(o.cluster.events, event)
	return nil
}

func (o recorder) Loaded(context.Context, *Run) error { return o.note("loaded") }

func (o recorder) Configure(_ context.Context, _ *Run, c *kubescheduler.Configuration) error {
	return o.note("configure " + strings.Join(c.Profiles, " "))
}

func (o recorder) Ready(context.Context, *Run) error { return o.note("ready") }

// newTestRun returns a run on a cluster.
func newTestRun(t *testing.T, c *cluster, o Options) *Run {
	t.Helper()
	release, err := versions.Parse("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	o.Scheduler.Release, o.Scheduler.Request = release, pack.Scheduler{Name: "default-scheduler"}
	o.Dir, o.Observer, o.Timeout = t.TempDir(), recorder{cluster: c}, time.Minute
	if err := o.readClasses(); err != nil {
		t.Fatal(err)
	}
	s := &session.Session{Log: zap.NewNop(), OnStep: func(string) func(error) { return func(error) {} },
		Note: func(string) {}, Warn: func(string) {}}
	return newRun(s, c, o)
}

// The snapshot is created first, without the pods to schedule. They follow in the order of the
// queue, each with the objects that refer to it, when the scheduler knows the snapshot.
func TestARunLoadsSchedulesAndReads(t *testing.T) {
	program, err := exec.LookPath("true") // a scheduler that only starts
	if err != nil {
		t.Skip(err)
	}
	c := newCluster(t)
	r := newTestRun(t, c, Options{
		Scheduler: kubescheduler.Scheduler{Program: program}, Scenario: scenario.Pending(),
		Snapshot: recordedObjects{
			stored("Node", "a", `},"status":{"allocatable":{"cpu":"4"}}`),
			stored("Pod", "running", `},"spec":{"nodeName":"a","priority":0},"status":{"phase":"Running"}`),
			stored("Pod", "stray", `},"spec":{"nodeName":"gone","priority":0},"status":{"phase":"Running"}`),
			stored("Pod", "low", `},"spec":{"priority":1},"status":{"phase":"Pending"}`),
			stored("Pod", "high", `},"spec":{"priority":2},"status":{"phase":"Pending"}`),
			stored("PersistentVolumeClaim", "data", `,"ownerReferences":[{"kind":"Pod","name":"low","uid":"uid-of-low"}]},"spec":{}`),
		},
	})
	ctx := t.Context()
	if err := r.load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.startScheduler(ctx); err != nil {
		t.Fatal(err)
	}
	<-r.Scheduler.Done()
	r.Scheduler = &kubescheduler.Process{Process: &apiserver.Process{}, MetricsURL: c.scheduler.URL,
		Profiles: r.Scheduler.Profiles, Release: r.Options.Scheduler.Release}
	if err := r.decide(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.readResult(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"create minions/a", "create pods/shop/running", "loaded", "configure default-scheduler", "ready",
		"create pods/shop/high", "create pods/shop/low", "create persistentvolumeclaims/shop/data",
	}
	if diff := cmp.Diff(want, c.events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Report.Finish()
	placements := []report.Placement{
		{Namespace: "shop", Name: "high", Node: "a"}, {Namespace: "shop", Name: "low", Node: "a"}}
	if diff := cmp.Diff(placements, r.Report.Placements); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
	notes := []string{"1 pod is left out: the snapshot does not have its node"}
	if diff := cmp.Diff(notes, r.Report.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if s := r.Report.Summary; s.Nodes != 1 || s.Pods != 1 || len(r.Report.Unplaced)+len(r.Report.Evicted) > 0 {
		t.Errorf("summary %+v, unplaced %v, evicted %v", s, r.Report.Unplaced, r.Report.Evicted)
	}
}

func TestNodesOfAScenarioMustExist(t *testing.T) {
	r := newTestRun(t, newCluster(t), Options{Snapshot: recordedObjects{stored("Node", "a", `},"status":{}`)}})
	r.Options.Scenario = scenario.Drain([]string{"b"})
	if err := r.load(t.Context()); err == nil || err.Error() != "the snapshot has no node b" {
		t.Errorf("got %v", err)
	}
	r.Options.classes = nil
	if err := r.Options.readClasses(); err == nil || err.Error() != "the snapshot has no node b" {
		t.Errorf("before the API server is started: got %v", err)
	}
}
