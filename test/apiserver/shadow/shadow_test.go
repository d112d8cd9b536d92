//go:build linux

// Package shadow runs shadows next to the default scheduler of a real API server, and reads its
// audit log.
package shadow

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/foresight/shadow"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	user  = "system:serviceaccount:tools:pmk-sched-shadow"
	space = "shop"
)

// permit creates the objects that `shadow --rbac` prints.
func permit(t *testing.T, p *controlplane.Plane) {
	t.Helper()
	p.Namespace(t.Context(), t, "tools")
	for _, document := range strings.Split(run.PMKSched(t, "shadow", "--rbac", "--namespace", "tools").OK(t).Stdout,
		"---\n") {
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

// observer is a running `pmk-sched shadow`.
type observer struct {
	cmd            *exec.Cmd
	stdout, stderr run.Output
}

// observe starts a shadow of the release of the API server, which it reaches with a kubeconfig.
func observe(t *testing.T, release versions.Release, kubeconfig string, args ...string) *observer {
	t.Helper()
	args = append([]string{"--kubeconfig", kubeconfig, "--as", user, "--log-level", "debug", "shadow", "--branch",
		release.String(), "-o", "json"}, args...)
	o := &observer{cmd: exec.CommandContext(run.Context(t), run.Program(t), args...)}
	o.cmd.Stdout, o.cmd.Stderr = &o.stdout, &o.stderr
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if o.cmd.ProcessState == nil {
			_ = o.cmd.Process.Kill() // it may have ended
			_ = o.cmd.Wait()
		}
		if t.Failed() {
			text := o.stderr.String()
			t.Logf("the shadow wrote:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	run.Eventually(t, "the shadow watches pods", func(context.Context) (bool, string) {
		text := o.stderr.String()
		return strings.Contains(text, "✓ start the shadow"), text
	})
	return o
}

// decided waits until the shadow has decided as often.
func (o *observer) decided(t *testing.T, times int) {
	t.Helper()
	run.Eventually(t, fmt.Sprintf("the shadow decides %d times", times), func(context.Context) (bool, string) {
		n := strings.Count(o.stderr.String(), "decided\t")
		return n >= times, fmt.Sprint(n)
	})
}

// end interrupts the shadow and its scheduler, as Ctrl-C in a terminal does, and returns the report
// that it still prints.
func (o *observer) end(t *testing.T) shadow.Report {
	t.Helper()
	if err := syscall.Kill(-o.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); o.cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(o.stderr.String(), "\nerror: interrupted") {
		t.Errorf("interrupted: %v", err)
	}
	if usage, ok := o.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.Logf("the proxy of the shadow: %d MiB of memory, %s of CPU", usage.Maxrss>>10,
			o.cmd.ProcessState.UserTime()+o.cmd.ProcessState.SystemTime())
	}
	return run.Decode[shadow.Report](t, o.stdout.String())
}

// node creates a node; no two have the same size.
func node(t *testing.T, p *controlplane.Plane, name string, milliCPU, memoryMiB int64) {
	t.Helper()
	room := corev1.ResourceList{
		"cpu": *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), "memory": *resource.NewQuantity(memoryMiB<<20,
			resource.BinarySI), "pods": resource.MustParse("2000"),
	}
	_, err := p.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// request returns a pod that requests resources.
func request(name, cpu, memory string) *corev1.Pod {
	no := false
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: &no, // no controller makes tokens, which 1.20 takes from Secrets
		// No controller removes the taint of a node that is not ready.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: "main", Image: "web"}},
	}}
	made.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu),
		"memory": resource.MustParse(memory)}
	return made
}

// pod places a pod that requests resources.
func pod(t *testing.T, p *controlplane.Plane, name, cpu, memory string) {
	t.Helper()
	place(t, p, request(name, cpu, memory))
}

// place creates a pod and waits until the default scheduler has bound or refused it.
func place(t *testing.T, p *controlplane.Plane, pod *corev1.Pod) {
	t.Helper()
	p.Create(t.Context(), t, space, pod)
	run.Eventually(t, "the default scheduler decides about "+pod.Name, func(ctx context.Context) (bool, string) {
		got, err := p.Kube.CoreV1().Pods(space).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return got.Spec.NodeName != "" || len(got.Status.Conditions) > 0, fmt.Sprint(got.Status)
	})
}

// The default scheduler binds pods one after the other, with a configuration in which no two nodes
// are equally good. A shadow with the same configuration agrees about every pod; one that packs
// does not. Neither changes anything, and pods are where the default scheduler has put them.
func TestShadowsCompareWithoutChangingAnything(t *testing.T) {
	t.Parallel()
	for _, release := range apiserver.Releases() {
		t.Run(release, func(t *testing.T) { comparesWithoutChangingAnything(t, release) })
	}
}

func comparesWithoutChangingAnything(t *testing.T, release string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.log")
	policy := run.WriteFile(t, "policy.yaml", audit.Policy)
	p := controlplane.Start(t, release, "--audit-log-path="+log, "--audit-policy-file="+policy,
		"--audit-log-mode=blocking")
	p.Namespace(t.Context(), t, space)
	permit(t, p)
	pods, pause := load(t)
	names := []string{"large"}
	for i := range int64(6) {
		names = append(names, fmt.Sprint("node-", i))
		node(t, p, names[1+i], (6100+1700*i)*int64(pods)/60, (20000+3700*i)*int64(pods)/60)
	}
	rules, err := versions.Select(p.Release)
	if err != nil {
		t.Fatal(err)
	}
	configuration := "apiVersion: " + rules.Render + "\nkind: KubeSchedulerConfiguration\n" +
		controlplane.WithoutTies(p.Release, names, "", "")
	p.NewScheduler(t, controlplane.Scheduler{Name: corev1.DefaultSchedulerName, Source: []byte(configuration)}).Start()
	pod(t, p, "before", "300m", "200Mi")
	same := observe(t, p.Release, p.Kubeconfig, "--config", run.WriteFile(t, "scheduler.yaml", configuration))
	packer := observe(t, p.Release, p.Kubeconfig, "--name", "packer", "--preset", "binpack")
	begin := time.Now()
	for i := range pods {
		if err := clock.Sleep(t.Context(), time.Until(begin.Add(time.Duration(i)*pause))); err != nil {
			t.Fatal(err)
		}
		pod(t, p, fmt.Sprintf("web-%04d", i), fmt.Sprintf("%dm", 100+70*(i%5)), fmt.Sprintf("%dMi", 100+190*(i%7)))
	}
	pod(t, p, "large", "800", "1Gi")
	same.decided(t, pods+1)
	node(t, p, "large", 900_000, 100_000)
	same.decided(t, pods+2) // the pod was refused before
	packer.decided(t, pods+2)

	report := same.end(t)
	decidedAll(t, "the same scheduler", report, pods+1)
	if report.Same != pods+1 {
		t.Errorf("the same scheduler: %d pods the same, want %d; different %+v, ties %+v", report.Same, pods+1,
			report.Differences, report.Noise)
	}
	report = packer.end(t)
	decidedAll(t, "the scheduler that packs", report, pods+1)
	if report.Scheduler != "packer" || report.Observed != corev1.DefaultSchedulerName {
		t.Errorf("scheduler %s is compared with %s", report.Scheduler, report.Observed)
	}
	if len(report.Differences) < pods/4 {
		t.Errorf("the scheduler that packs: only %d pods differ: %+v", len(report.Differences), report)
	}
	nodes := nodesOfPods(t, p)
	for name, node := range nodes {
		if node == "" {
			t.Errorf("the default scheduler has not bound %s", name)
		}
	}
	for _, d := range report.Differences {
		if d.Node == d.Observed || d.Node == "" || d.Observed != nodes[d.Name] {
			t.Errorf("%+v, the pod is on %s", d, nodes[d.Name])
		}
	}
	onlyReads(t, log)
}

// decidedAll checks that a shadow has decided about all pods.
func decidedAll(t *testing.T, who string, r shadow.Report, pods int) {
	t.Helper()
	t.Logf("%s: %d pods the same, %d different, %d ties, %d missed", who, r.Same, len(r.Differences), len(r.Noise),
		r.Missed)
	if len(r.Undecided) > 0 {
		t.Errorf("%s: undecided: %+v", who, r.Undecided)
	}
	if r.Missed > 0 {
		t.Errorf("%s: %d pods are missed", who, r.Missed)
	}
	if all := r.Same + len(r.Differences) + len(r.Noise); all != pods {
		t.Errorf("%s: decisions about %d pods, want %d", who, all, pods)
	}
}

// load returns how many pods are created, and how long after each other: few at once, or with
// SHADOW 1,000 in that time.
func load(t *testing.T) (pods int, pause time.Duration) {
	t.Helper()
	text := os.Getenv("SHADOW")
	if text == "" {
		return 60, 0
	}
	all, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SHADOW: %v", err)
	}
	return 1000, all / 1000
}

func nodesOfPods(t *testing.T, p *controlplane.Plane) map[string]string {
	t.Helper()
	list, err := p.Kube.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = list.Items[i].Spec.NodeName
	}
	return nodes
}

// onlyReads checks that an audit log has requests of shadows, and that all of them are reads.
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
	t.Logf("requests of the shadows: %v", verbs)
	if verbs["list"] == 0 || verbs["watch"] == 0 {
		t.Errorf("the shadows sent no requests to list or watch: %v", verbs)
	}
	for verb, n := range verbs {
		if verb != "get" && verb != "list" && verb != "watch" {
			t.Errorf("%d requests of the shadows are %s", n, verb)
		}
	}
}
