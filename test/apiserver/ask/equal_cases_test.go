//go:build linux && cases

package ask

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/files"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const (
	// questions is the number of generated questions for each release, unless QUESTIONS is set.
	questions = 200
	// withChanges is the number of questions of which one looks for changes too, for up to 5 s.
	// The answers that follow must not depend on that.
	withChanges = 5
)

// Answers are those of `simulate add` on a snapshot of the same moment.
func TestAnswersEqualSimulations(t *testing.T) {
	t.Parallel()
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { equalSimulations(t, release) })
	}
}

func equalSimulations(t *testing.T, release string) {
	t.Helper()
	n := questions
	if text := os.Getenv("QUESTIONS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p, log, config := plane(t, release)
	began(t, p)
	limit(t, p)
	s := serve(t, p, "--config", config)
	sim := newSimulator(t, p, config)
	random := rand.New(rand.NewPCG(1, 2))
	fits := map[string]int{}
	for i := range n {
		manifest := generate(random, i)
		a := s.generated(t, manifest, i%withChanges == 0)
		fits[a.Fits]++
		want, evicted := sim.add(t, manifest)
		if got := nodesOf(*a); !mapsEqual(want, got) && !interchanged(a, want) || evicted != len(a.Evicted) {
			t.Errorf("question %d: the answer has %v and evicts %v, simulate add %v and evicts %d:\n%s", i, got, a.Evicted, want,
				evicted, manifest)
			for _, pod := range a.Pods {
				if pod.Node == "" {
					t.Logf("%s: %s", pod.Name, pod.Reason)
				}
			}
		}
	}
	t.Logf("%d questions: %v", n, fits)
	s.stop(t)
	onlyReads(t, log)
}

// interchanged reports whether an answer with evictions has the same nodes for other pods of the
// one template. Pods that evict others are tried again in an order that depends on the time.
func interchanged(a *ask.Answer, want map[string]string) bool {
	return len(a.Evicted) > 0 &&
		slices.Equal(slices.Sorted(maps.Values(want)), slices.Sorted(maps.Values(nodesOf(*a))))
}

// generated asks about the pods of a manifest.
func (s *server) generated(t *testing.T, manifest string, changes bool) *ask.Answer {
	t.Helper()
	var fields map[string]any
	decode(t, manifest, &fields)
	a, err := (&ask.Client{Address: "unix:" + s.socket}).Ask(t.Context(),
		ask.Question{Manifests: []map[string]any{fields}, Changes: &changes})
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return a
}

// began gives the pods on nodes different ages: the youngest ones are evicted first.
func began(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	list, err := p.Kube.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC))
		list.Items[i].Status.StartTime, list.Items[i].Status.Phase = &at, corev1.PodRunning
		_, err := p.Kube.CoreV1().Pods(space).UpdateStatus(t.Context(), &list.Items[i], metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// limit creates a LimitRange with default requests in a namespace.
func limit(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	p.Namespace(t.Context(), t, "limited")
	var limits corev1.LimitRange
	decode(t, `metadata: {name: defaults}
spec:
  limits:
  - {type: Container, default: {cpu: "3", memory: 6Gi}, defaultRequest: {cpu: 700m}, max: {cpu: "3"}}
`, &limits)
	if _, err := p.Kube.CoreV1().LimitRanges("limited").Create(t.Context(), &limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

// generate returns a random workload.
func generate(r *rand.Rand, number int) string {
	namespace := pick(r, space, space, space, "limited")
	name := fmt.Sprintf("q%d", number)
	app := pick(r, "web", "db", name)
	requests := pick(r, "requests: {cpu: 300m, memory: 300Mi}", "requests: {cpu: 900m, memory: 2Gi}",
		"requests: {cpu: 1800m}", "limits: {cpu: 1200m, memory: 1Gi}", "requests: {cpu: 2500m}, limits: {cpu: 4}",
		"requests: {memory: 5Gi}", "", "limits: {cpu: 2500m}")
	var spec []string
	maybe := func(oneIn int, choices ...string) {
		if r.IntN(oneIn) == 0 {
			spec = append(spec, pick(r, choices...))
		}
	}
	self := "labelSelector: {matchLabels: {app: " + app + "}}"
	maybe(5, "nodeSelector: {kubernetes.io/hostname: "+pick(r, "node-1", "node-2", "node-3", "gpu")+"}")
	maybe(3, "tolerations: [{key: team, operator: Equal, value: gpu, effect: NoSchedule}]",
		"tolerations: [{operator: Exists}]", "tolerations: [{key: team, operator: Exists}]")
	maybe(3, "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"[{topologyKey: kubernetes.io/hostname, "+self+"}]}}",
		"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: kubernetes.io/hostname, "+self+"}]}}",
		"affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "+
			"[{weight: 50, podAffinityTerm: {topologyKey: kubernetes.io/hostname, "+self+"}}]}}")
	maybe(3, "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, "+
		"whenUnsatisfiable: DoNotSchedule, "+self+"}]",
		"topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, "+
			"whenUnsatisfiable: ScheduleAnyway, "+self+"}]")
	maybe(4, "priorityClassName: urgent", "priorityClassName: urgent", "priorityClassName: system-cluster-critical")
	maybe(6, "hostNetwork: true")
	port := ""
	if r.IntN(6) == 0 {
		port = pick(r, ", ports: [{containerPort: 80, hostPort: 8080}]", ", ports: [{containerPort: 80}]")
	}
	kind := pick(r, "Pod", "Deployment", "StatefulSet", "Job", "Job")
	restart := "Always"
	if kind == "Job" {
		restart = "Never"
	}
	pod := fmt.Sprintf("{restartPolicy: %s, %s containers: [{name: main, image: web, resources: {%s}%s}]}", restart,
		strings.Join(append(spec, ""), ", "), requests, port)
	replicas := 1 + r.IntN(5)
	metadata := fmt.Sprintf("metadata: {name: %s, namespace: %s, labels: {app: %s}}\n", name, namespace, app)
	template := fmt.Sprintf("template: {metadata: {labels: {app: %s}}, spec: %s}", app, pod)
	selector := fmt.Sprintf("selector: {matchLabels: {app: %s}}", app)
	switch kind {
	case "Pod":
		return "apiVersion: v1\nkind: Pod\n" + metadata + "spec: " + pod + "\n"
	case "Job":
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\n%sspec: {parallelism: %d, completions: %[2]d, %s}\n", metadata,
			replicas, template)
	case "StatefulSet":
		return fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\n%sspec: {replicas: %d, serviceName: x, %s, %s}\n", metadata,
			replicas, selector, template)
	}
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\n%sspec: {replicas: %d, %s, %s}\n", metadata, replicas, selector,
		template)
}

// simulator runs simulations on one snapshot.
type simulator struct {
	server   *simulate.Server
	options  simulate.Options
	dir      string
	runs     int
	snapshot *capture.Snapshot
}

func newSimulator(t *testing.T, p *controlplane.Plane, config string) *simulator {
	t.Helper()
	s := &simulator{dir: t.TempDir()}
	file := filepath.Join(s.dir, "snapshot.tar.gz")
	run.PMKSched(t, "--kubeconfig", p.Kubeconfig, "snapshot", "--to-file", file).OK(t)
	var err error
	if s.snapshot, err = capture.OpenFile(file); err != nil {
		t.Fatal(err)
	}
	binaries, err := apiserver.BinariesOf(t.Context(), p.Release)
	if err != nil {
		t.Fatal(err)
	}
	program, err := controlplane.Build(t.Context(), build.Options{Release: p.Release})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	ignore := func(string) {}
	on := &session.Session{Log: zap.NewNop(), OnStep: func(string) func(error) { return func(error) {} }, Note: ignore,
		Warn: ignore}
	scheduler := kubescheduler.Scheduler{Release: p.Release, Program: program, Request: pack.Scheduler{
		Name: corev1.DefaultSchedulerName, Configuration: profiles.Request{Source: text, SourceName: config}}}
	s.options = simulate.Options{Snapshot: s.snapshot, Timeout: run.Patience, Scheduler: scheduler, AdmitsMore: true}
	o := s.options
	o.Dir = filepath.Join(s.dir, "server")
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	programs := simulate.Programs{Scheduler: scheduler, KubeAPIServer: binaries.KubeAPIServer, Etcd: binaries.Etcd}
	if s.server, err = simulate.StartServer(t.Context(), on, programs, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.server.Close(), s.snapshot.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// add returns the nodes of the pods of a manifest, and the number of evicted pods.
func (s *simulator) add(t *testing.T, manifest string) (nodes map[string]string, evicted int) {
	t.Helper()
	var manifests []map[string]any
	_, err := files.Manifests(t.Context(), []string{files.Stdin}, bytes.NewBufferString(manifest),
		func(o map[string]any) error {
			manifests = append(manifests, o)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	if o.Scenario, err = scenario.Add(manifests, 1, 0); err != nil {
		t.Fatal(err)
	}
	s.runs++
	o.Dir = filepath.Join(s.dir, strconv.Itoa(s.runs))
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var r *report.Report
	if r, err = s.server.Run(t.Context(), o); err != nil {
		t.Fatalf("%v (invalid: %v):\n%s", err, problem.IsInvalid(err), manifest)
	}
	nodes = map[string]string{}
	for _, placed := range r.Placements {
		nodes[placed.Namespace+"/"+placed.Name] = placed.Node
	}
	for _, unplaced := range r.Unplaced {
		nodes[unplaced.Namespace+"/"+unplaced.Name] = ""
	}
	return nodes, len(r.Evicted)
}
