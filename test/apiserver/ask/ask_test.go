//go:build linux

// Package ask runs the server of `pmk-sched ask` at a real API server, asks it, and reads the audit
// log.
package ask

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	user  = "system:serviceaccount:tools:pmk-sched-ask"
	space = "shop"
)

// permit creates the objects that `ask serve --rbac` prints.
func permit(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	p.Namespace(t.Context(), t, "tools")
	for _, document := range strings.Split(
		run.PMKSched(t, "ask", "serve", "--rbac", "--namespace", "tools").OK(t).Stdout, "---\n") {
		var err error
		switch {
		case strings.Contains(document, "kind: ServiceAccount\nmetadata"):
			var account corev1.ServiceAccount
			decode(t, document, &account)
			_, err = p.Kube.CoreV1().ServiceAccounts(account.Namespace).Create(t.Context(), &account, metav1.CreateOptions{})
		case strings.Contains(document, "kind: ClusterRoleBinding\n"):
			var binding rbacv1.ClusterRoleBinding
			decode(t, document, &binding)
			_, err = p.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &binding, metav1.CreateOptions{})
		default:
			var role rbacv1.ClusterRole
			decode(t, document, &role)
			_, err = p.Kube.RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatalf("%v: %s", err, document)
		}
	}
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

// server is a running `pmk-sched ask serve`.
type server struct {
	socket string
	cmd    *exec.Cmd
	stderr run.Output
}

// serve starts a server at a socket, with a scheduler of the API server's release.
func serve(t *testing.T, p *controlplane.Plane, args ...string) *server {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "ask.sock")
	s := serveAt(t, p, "unix", socket, append([]string{"--listen", "unix:" + socket}, args...)...)
	s.socket = socket
	return s
}

// serveAt starts a server, which listens at an address of a network.
func serveAt(t *testing.T, p *controlplane.Plane, network, address string, args ...string) *server {
	t.Helper()
	s := &server{}
	args = append([]string{"--kubeconfig", p.Kubeconfig, "--as", user, "--log-level", "debug", "ask", "serve", "--branch",
		p.Release.String()}, args...)
	s.cmd = exec.CommandContext(run.Context(t), run.Program(t), args...)
	s.cmd.Stderr = &s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			text := s.stderr.String()
			t.Logf("the server wrote:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	run.Eventually(t, "the server listens", func(ctx context.Context) (bool, string) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return false, s.stderr.String()
		}
		return c.Close() == nil, ""
	})
	return s
}

// stop interrupts the server and its scheduler, as Ctrl-C in a terminal does.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // interrupted
}

// ask asks about manifests, as a user does.
func (s *server) ask(t *testing.T, manifest string, args ...string) ask.Answer {
	t.Helper()
	file := run.WriteFile(t, "manifest.yaml", manifest)
	args = append([]string{"ask", "-m", file, "--address", "unix:" + s.socket, "-o", "json"}, args...)
	result := run.PMKSched(t, args...)
	if result.Code != 0 && result.Code != 3 {
		t.Fatal(result)
	}
	a := run.Decode[ask.Answer](t, result.Stdout)
	if fits := result.Code == 0; fits != (a.Fits == ask.Yes) {
		t.Errorf("exit status %d: %+v", result.Code, a)
	}
	return a
}

// node creates a node; no two have the same size.
func node(t *testing.T, p *controlplane.Plane, name string, milliCPU, memoryMiB int64, taints ...corev1.Taint) {
	t.Helper()
	room := corev1.ResourceList{
		"cpu": *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), "memory": *resource.NewQuantity(memoryMiB<<20,
			resource.BinarySI), "pods": resource.MustParse("200"),
	}
	_, err := p.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// No controller removes the taint of a new node.
	run.Eventually(t, "node "+name+" has no taint", func(ctx context.Context) (bool, string) {
		got, err := p.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if len(got.Spec.Taints) == len(taints) {
			return true, ""
		}
		got.Spec.Taints = taints
		_, err = p.Kube.CoreV1().Nodes().Update(ctx, got, metav1.UpdateOptions{})
		return false, fmt.Sprint(err)
	})
}

// bound creates a pod on a node.
func bound(t *testing.T, p *controlplane.Plane, name, node, cpu, class string) {
	t.Helper()
	no := false
	p.Create(t.Context(), t, space, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"app": "web"},
	}, Spec: corev1.PodSpec{
		NodeName: node, PriorityClassName: class, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "main", Image: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}},
	}})
}

func job(name, cpu, memory string, pods int, more string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s}
spec:
  parallelism: %d
  completions: %[3]d
  template:
    spec:
      restartPolicy: Never
      %s
      containers: [{name: main, image: batch, resources: {requests: {cpu: %s, memory: %s}}}]
`, name, space, pods, more, cpu, memory)
}

// plane starts an API server with nodes and pods, and returns it with a configuration without ties.
func plane(t *testing.T, release string) (p *controlplane.Plane, log, config string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "audit.log")
	policy := run.WriteFile(t, "policy.yaml", audit.Policy)
	p = controlplane.Start(t, release, "--audit-log-path="+log, "--audit-policy-file="+policy,
		"--audit-log-mode=blocking")
	p.Namespace(t.Context(), t, space)
	permit(t, p)
	var names []string
	for i := range int64(4) {
		names = append(names, fmt.Sprint("node-", i))
		node(t, p, names[i], 4000+500*i, 8000+900*i)
	}
	names = append(names, "gpu")
	node(t, p, "gpu", 16000, 64000, corev1.Taint{Key: "team", Value: "gpu", Effect: corev1.TaintEffectNoSchedule})
	_, err := p.Kube.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound(t, p, "web-0", "node-0", "3", "")
	bound(t, p, "web-1", "node-1", "3500m", "")
	bound(t, p, "web-2", "node-2", "1", "")
	bound(t, p, "web-3", "node-3", "2", "")
	rules, err := versions.Select(p.Release)
	if err != nil {
		t.Fatal(err)
	}
	config = run.WriteFile(t, "scheduler.yaml", "apiVersion: "+rules.Render+"\nkind: KubeSchedulerConfiguration\n"+
		controlplane.WithoutTies(p.Release, names, "", ""))
	return p, log, config
}

func nodesOf(a ask.Answer) map[string]string {
	nodes := map[string]string{}
	for _, pod := range a.Pods {
		nodes[pod.Namespace+"/"+pod.Name] = pod.Node
	}
	return nodes
}

func TestAnswersOfTheLiveCluster(t *testing.T) {
	t.Parallel()
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { answers(t, release) })
	}
}

func answers(t *testing.T, release string) {
	t.Helper()
	p, log, config := plane(t, release)
	s := serve(t, p, "--config", config)

	a := s.ask(t, job("small", "500m", "200Mi", 3, ""))
	if a.Fits != ask.Yes || len(a.Pods) != 3 || a.Release != p.Release.String() {
		t.Errorf("a small job: %+v", a)
	}
	again := s.ask(t, job("small", "500m", "200Mi", 3, ""))
	if !mapsEqual(nodesOf(a), nodesOf(again)) {
		t.Errorf("asked again: %v, before %v", nodesOf(again), nodesOf(a))
	}
	a = s.ask(t, job("large", "2", "1Gi", 4, ""))
	if a.Fits != ask.No {
		t.Errorf("a large job: %+v", a)
	}
	var kinds []string
	for _, change := range a.Changes {
		kinds = append(kinds, change.Kind)
	}
	for _, kind := range []string{"count", "toleration", "requests", "node"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no change of %s: %+v", kind, a.Changes)
		}
	}
	a = s.ask(t, job("urgent", "5200m", "100Mi", 1, "priorityClassName: urgent"))
	if a.Fits != ask.Yes || len(a.Evicted) != 1 {
		t.Errorf("an urgent job: %+v", a)
	}
	// The evicted pod is back.
	if next := s.ask(t, job("urgent", "5200m", "100Mi", 1, "priorityClassName: urgent")); len(next.Evicted) != 1 ||
		next.Evicted[0] != a.Evicted[0] {
		t.Errorf("an urgent job, again: %+v, before %+v", next, a)
	}
	answersAgents(t, p, s)
	freesThePlacesOfLostClients(t, s)
	equalsSimulation(t, p, s, job("small", "500m", "200Mi", 3, "")+"---\n"+job("large", "2", "1Gi", 4, "")+
		"---\n"+job("urgent", "5200m", "100Mi", 1, "priorityClassName: urgent"), "--config", config)
	s.stop(t)
	onlyReads(t, log)
}

// freesThePlacesOfLostClients asks more questions than may wait, with clients that hang up.
func freesThePlacesOfLostClients(t *testing.T, s *server) {
	t.Helper()
	client := ask.Client{Address: "unix:" + s.socket}
	var q ask.Question
	var manifest map[string]any
	decode(t, job("lost", "2", "1Gi", 4, ""), &manifest)
	q.Manifests = append(q.Manifests, manifest)
	ctx, hangUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var refused atomic.Int32
	for range 40 {
		all.Go(func() {
			if _, err := client.Ask(ctx, q); err != nil && strings.Contains(err.Error(), "too many questions") {
				refused.Add(1)
			}
		})
	}
	run.Eventually(t, "questions are refused", func(context.Context) (bool, string) {
		return refused.Load() > 0, ""
	})
	hangUp()
	all.Wait()
	run.Eventually(t, "no question waits", func(ctx context.Context) (bool, string) {
		status, err := client.Status(ctx)
		return err == nil && status[0].Questions == 0, fmt.Sprint(status, err)
	})
	if a := s.ask(t, job("small", "500m", "200Mi", 3, "")); a.Fits != ask.Yes {
		t.Errorf("after the lost clients: %+v", a)
	}
}

// equalsSimulation compares an answer with that of `simulate add` with flags of a scheduler.
func equalsSimulation(t *testing.T, p *controlplane.Plane, s *server, manifest string, scheduler ...string) {
	t.Helper()
	a := s.ask(t, manifest)
	file := run.WriteFile(t, "manifest.yaml", manifest)
	args := append([]string{"--kubeconfig", p.Kubeconfig, "simulate", "add", "-m", file, "--limit", "0", "--branch",
		p.Release.String(), "-o", "json"}, scheduler...)
	simulated := run.Decode[report.Report](t, run.PMKSched(t, args...).OK(t).Stdout)
	want := map[string]string{}
	for _, placed := range simulated.Placements {
		want[placed.Namespace+"/"+placed.Name] = placed.Node
	}
	for _, unplaced := range simulated.Unplaced {
		want[unplaced.Namespace+"/"+unplaced.Name] = ""
	}
	if !mapsEqual(want, nodesOf(a)) {
		t.Errorf("the answer has %v, simulate add %v", nodesOf(a), want)
	}
	if len(simulated.Evicted) != len(a.Evicted) {
		t.Errorf("the answer evicts %v, simulate add %v", a.Evicted, simulated.Evicted)
	}
}

func mapsEqual(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// onlyReads checks that an audit log has requests of the server, and that all of them are reads.
func onlyReads(t *testing.T, log string) {
	t.Helper()
	requests, err := audit.Requests(log, "")
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]int{}
	for _, r := range requests {
		if r.User == user {
			verbs[r.Verb]++
		}
	}
	t.Logf("requests of the server: %v", verbs)
	if verbs["list"] == 0 || verbs["watch"] == 0 {
		t.Errorf("the server sent no requests to list or watch: %v", verbs)
	}
	for verb, n := range verbs {
		if verb != "get" && verb != "list" && verb != "watch" {
			t.Errorf("%d requests of the server are %s", n, verb)
		}
	}
}
