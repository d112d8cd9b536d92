//go:build linux

package calls

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// placements follow the extender.
var placements = map[string]func(*testing.T, scene){
	"filter": func(t *testing.T, s scene) {
		forBothForms(t, func(t *testing.T, cached bool) { filtered(t, s, cached) })
	},
	"prioritize": func(t *testing.T, s scene) {
		forBothForms(t, func(t *testing.T, cached bool) { prioritized(t, s, cached) })
	},
	"preempt": func(t *testing.T, s scene) {
		forBothForms(t, func(t *testing.T, cached bool) { preempted(t, s, cached) })
	},
	"bind":              bound,
	"one feasible node": oneFeasible,
	"authorities":       authorities,
}

// forBothForms tries names of nodes and whole nodes.
func forBothForms(t *testing.T, test func(t *testing.T, cached bool)) {
	t.Run("names", func(t *testing.T) { test(t, true) })
	t.Run("whole nodes", func(t *testing.T) { test(t, false) })
}

// group makes a namespace of the test's own, and nodes, which are called as the namespace and a
// letter.
func (s scene) group(ctx context.Context, t *testing.T, letters ...string) (name string, nodes []string) {
	t.Helper()
	made, err := s.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Clear(t, made.Name) })
	s.Namespace(ctx, t, made.Name)
	for _, letter := range letters {
		nodes = append(nodes, made.Name+"-"+letter)
	}
	s.Nodes(ctx, t, made.Name, nodes...)
	return made.Name, nodes
}

func (s scene) pod(group, name string) *corev1.Pod {
	return controlplane.Pod(s.schedulerName(group), group, name)
}

// configure writes a file for --config, with policies and their arguments as JSON.
func configure(t *testing.T, policies string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "extender.yaml")
	text := "apiVersion: pmk-sched.io/v1alpha1\nkind: Extender\npolicies: " + policies + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// filtered: a policy that rejects all nodes for the pods of one namespace.
func filtered(t *testing.T, s scene, cached bool) {
	ctx := testContext(t)
	group, _ := s.group(ctx, t, "a", "b")
	held := group + "-held"
	t.Cleanup(func() { s.Clear(t, held) })
	s.Namespace(ctx, t, held)
	e := s.NewExtender(t, "http", "--config",
		configure(t, fmt.Sprintf(`[{name: BlockAll, args: {namespaces: [%s], message: no lunch break}}]`, held)))
	e.Start()
	e.Await(ctx, t, "")
	asked := extender(e.URL)
	asked.NodeCacheCapable = &cached
	s.start(t, group, asked)
	s.Create(ctx, t, held, s.pod(group, "p"))
	run.Eventually(t, "the event says why", func(ctx context.Context) (bool, string) {
		said := strings.Join(s.Failures(ctx, t, held, "p"), "; ")
		return strings.Contains(said, "2 no lunch break"), said
	})
	s.Place(ctx, t, group, s.pod(group, "p"))
	if s.Unbound(ctx, t, held) != 1 {
		t.Error("the pod that is filtered out everywhere is bound")
	}
}

// loadWindow is how far the queries for the load look back.
const loadWindow = 3 * time.Second

// loadaware starts a Prometheus that measures the nodes' load, and an extender that reads it.
func loadaware(ctx context.Context, t *testing.T, s scene,
	nodes []string) (*prometheus.Exporter, *prometheus.Server, *controlplane.Extender) {
	t.Helper()
	instances := map[string]string{}
	for _, node := range nodes {
		instances[node] = node
	}
	load := prometheus.StartExporter(t, nodes...)
	server := prometheus.New(t, "127.0.0.1", 200*time.Millisecond, load, instances)
	e := s.NewExtender(t, "http", "--prometheus", "http://"+server.Address, "--config", configure(t,
		fmt.Sprintf(
			`[{name: LoadAware, args: {interval: 200ms, staleAfter: 5s, window: %s, expectedLoad: {disabled: true}, metrics: [{name: cpu, maxPercent: 85}, {name: memory}]}}]`, loadWindow)))
	server.Start(ctx, t)
	e.Start()
	return load, server, e
}

// The loads of nodes, and the scores between which they count as measured: the default queries
// measure CPU over seconds.
const idle, half, full = 0.1, 0.5, 1.0

// awaitLoad waits until the extender's scores have shown one node as idle and another one as fully
// loaded for the window of the queries: the rate of a counter is unreliable in the first samples
// after a change.
func awaitLoad(ctx context.Context, t *testing.T, e *controlplane.Extender, pod *corev1.Pod, idle, full string) {
	t.Helper()
	var since time.Time
	run.Eventually(t, "the extender's scores follow the load", func(ctx context.Context) (bool, string) {
		scores, err := e.Scores(ctx, pod, idle, full)
		if err != nil {
			return false, err.Error()
		}
		switch follow := scores[idle] >= 8 && scores[full] == 0; {
		case !follow:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > loadWindow, fmt.Sprint(scores)
	})
}

// prioritized: pods go to the node with the least load in Prometheus, and not to one with too much.
func prioritized(t *testing.T, s scene, cached bool) {
	ctx := testContext(t)
	group, nodes := s.group(ctx, t, "a", "b", "c")
	load, _, e := loadaware(ctx, t, s, nodes)
	load.Load(map[string]float64{nodes[0]: full, nodes[1]: half, nodes[2]: idle})
	e.Await(ctx, t, "")
	asked := extender(e.URL)
	asked.NodeCacheCapable = &cached
	s.start(t, group, asked)

	awaitLoad(ctx, t, e, s.pod(group, "p"), nodes[2], nodes[0])
	for _, name := range []string{"p1", "p2", "p3"} {
		if got := s.Place(ctx, t, group, s.pod(group, name)); got != nodes[2] {
			t.Errorf("pod %s is placed on %s, want %s, which is idle", name, got, nodes[2])
		}
	}
	load.Load(map[string]float64{nodes[0]: idle, nodes[2]: full})
	awaitLoad(ctx, t, e, s.pod(group, "p"), nodes[0], nodes[2])
	for _, name := range []string{"q1", "q2", "q3"} {
		if got := s.Place(ctx, t, group, s.pod(group, name)); got != nodes[0] {
			t.Errorf("pod %s is placed on %s, want %s, to which the load's absence moved", name, got, nodes[0])
		}
	}
	elsewhere := s.pod(group, "r")
	elsewhere.Spec.NodeName, elsewhere.Spec.NodeSelector = "", map[string]string{corev1.LabelHostname: nodes[2]}
	s.Create(ctx, t, group, elsewhere)
	run.Eventually(t, "the only node it may run on is too loaded", func(ctx context.Context) (bool, string) {
		said := strings.Join(s.Failures(ctx, t, group, "r"), "; ")
		return strings.Contains(said, "cpu"), said
	})
}

// preempted: of two nodes that could be cleared for a pod with priority, the scheduler would take
// the one whose pod matters less; but the extender rejects that node.
func preempted(t *testing.T, s scene, cached bool) {
	ctx := testContext(t)
	group, nodes := s.group(ctx, t, "a", "b")
	load, _, e := loadaware(ctx, t, s, nodes)
	load.Load(map[string]float64{nodes[0]: full, nodes[1]: idle})
	e.Await(ctx, t, "")
	for i, node := range nodes {
		victim := controlplane.Filling(s.pod(group, fmt.Sprintf("victim-%d", i)))
		victim.Spec.NodeName, victim.Spec.PriorityClassName = node, s.class(ctx, t, fmt.Sprintf("%s-%d", group, i),
			int32(i+1))
		s.Create(ctx, t, group, victim)
	}
	awaitLoad(ctx, t, e, s.pod(group, "p"), nodes[1], nodes[0])
	asked := extender(e.URL)
	asked.NodeCacheCapable, asked.PreemptVerb = &cached, "preempt"
	s.start(t, group, asked)
	urgent := controlplane.Filling(s.pod(group, "urgent"))
	urgent.Spec.PriorityClassName = s.class(ctx, t, group+"-urgent", 1000)
	if got := s.Place(ctx, t, group, urgent); got != nodes[1] {
		t.Errorf("placed on %s, want %s", got, nodes[1])
	}
	if _, err := s.Kube.CoreV1().Pods(group).Get(ctx, "victim-0", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod on the node that will not do was preempted: %v", err)
	}
	if calls := metric(ctx, t, e, `pmk_extender_requests_total{result="ok",verb="preempt"}`); calls == 0 {
		t.Error("preempt was not asked")
	}
}

// bound: the extender binds the pod after its policy has annotated it.
func bound(t *testing.T, s scene) {
	ctx := testContext(t)
	group, _ := s.group(ctx, t, "a", "b")
	dir := t.TempDir()
	set := certify(t, certificates.Set{}, time.Now())
	files(t, dir, set)
	e := s.secured(t, dir, "--policy", "timestamp", "--verb", "bind", "--client-ca-file", filepath.Join(dir, "ca.crt"))
	e.Start()
	e.Await(ctx, t, "")
	asked := extender(e.URL)
	asked.FilterVerb, asked.PrioritizeVerb, asked.Weight, asked.BindVerb = "", "", 0, "bind"
	asked.EnableHTTPS, asked.TLS = true, &profiles.ExtenderTLS{CAData: set.CA.Cert,
		CertFile: filepath.Join(dir, "client.crt"), KeyFile: filepath.Join(dir, "client.key")}
	s.start(t, group, asked)
	s.Place(ctx, t, group, s.pod(group, "p"))
	pod, err := s.Kube.CoreV1().Pods(group).Get(ctx, "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Annotations["Scheduler-Timestamp"] == "" {
		t.Errorf("the policy's PreBind did not run: %v", pod.Annotations)
	}
	// The extender answers and counts the request after the pod is bound.
	run.Eventually(t, "the extender has answered one request to bind", func(ctx context.Context) (bool, string) {
		calls := metric(ctx, t, e, `pmk_extender_requests_total{result="ok",verb="bind"}`)
		return calls == 1, fmt.Sprint(calls)
	})
}

// oneFeasible: with a single node left there is nothing to prefer, and the scheduler does not ask.
func oneFeasible(t *testing.T, s scene) {
	ctx := testContext(t)
	group, nodes := s.group(ctx, t, "a", "b")
	e := s.NewExtender(t, "http", "--policy", "blockall", "--config",
		configure(t, "[{name: BlockAll, args: {namespaces: [none]}}]"))
	e.Start()
	e.Await(ctx, t, "")
	s.start(t, group, extender(e.URL))
	asked := func(verb string) float64 {
		return metric(ctx, t, e, fmt.Sprintf(`pmk_extender_requests_total{result="ok",verb=%q}`, verb))
	}
	one := s.pod(group, "one")
	one.Spec.NodeSelector[corev1.LabelHostname] = nodes[0]
	s.Place(ctx, t, group, one)
	if filter, prioritize := asked("filter"), asked("prioritize"); filter != 1 || prioritize != 0 {
		t.Errorf("with one feasible node filter was asked %v times, prioritize %v times; want 1 and 0", filter, prioritize)
	}
	s.Place(ctx, t, group, s.pod(group, "two"))
	if filter, prioritize := asked("filter"), asked("prioritize"); filter != 2 || prioritize != 1 {
		t.Errorf("with two more feasible nodes filter was asked %v times, prioritize %v times; want 2 and 1", filter,
			prioritize)
	}
}

// class makes a priority class.
func (s scene) class(ctx context.Context, t *testing.T, name string, value int32) string {
	t.Helper()
	s.PriorityClass(ctx, t, name, value)
	return name
}

// metric returns the value of one series of the extender's metrics, 0 if it is not there.
func metric(ctx context.Context, t *testing.T, e *controlplane.Extender, series string) float64 {
	t.Helper()
	value, err := e.Metric(ctx, series)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
