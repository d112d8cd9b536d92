//go:build linux

// Package scale measures the cost of `status` and `detect` on a large cluster: CPU time and memory
// of the process, and the requests that the API server logs.
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/largecluster"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
)

// The size that docs/operations.md names.
const (
	nodes         = 5_000
	controlPlanes = 3
	// agents is the number of pods in kube-system on each node, from two DaemonSets; apps is the
	// number of all other pods, of which one in ten waits for the second scheduler.
	agents = 2
	apps   = 10_000
	// rounds is how often each command is measured; the median counts.
	rounds = 5
	// A command must not take more CPU time in seconds, and more memory in MiB.
	mostCPU, mostMemory = 1.0, 100.0
	page                = "docs/operations.md"
)

const (
	scheduler = "my-scheduler"
	label     = "node-role.kubernetes.io/control-plane"
)

// auditLog is the file of the API server's audit log.
var (
	server   *apiserver.Server
	auditLog string
)

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(withServer(m))
}

// withServer runs the tests with an API server that logs each request.
func withServer(m *testing.M) (status int) {
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if server, auditLog, err = apiserver.StartAudited(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, "start API server:", err)
		return 1
	}
	defer func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stop API server:", err)
			status = 1
		}
	}()
	return m.Run()
}

// BenchmarkStatusAndDetect fails if a command lists pods without a limit, or reports another number
// of requests than the API server logged.
func BenchmarkStatusAndDetect(b *testing.B) {
	ctx := run.Context(b)
	fill(ctx, b)
	deployScheduler(ctx, b)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, ""); err != nil {
		b.Fatal(err)
	}
	for _, command := range []string{"status", "detect"} {
		b.Run(command, func(b *testing.B) {
			var cpu, memory, sent samples.Set
			var requests []audit.Request
			for b.Loop() {
				for range rounds {
					if err := os.Truncate(auditLog, 0); err != nil {
						b.Fatal(err)
					}
					result, used := run.Measure(b, run.Program(b), command, "--kubeconfig", kubeconfig, "--node-root", "none", "-o",
						"json")
					result.OK(b)
					var err error
					if requests, err = audit.Requests(auditLog, "pmk-sched/"); err != nil {
						b.Fatal(err)
					}
					check(b, requests, run.Decode[report](b, result.Stdout))
					cpu, memory, sent = append(cpu, used.CPU), append(memory, used.MiB), append(sent, float64(len(requests)))
				}
			}
			claim, most := samples.Claim(page, "`status` with one scheduler of three replicas | 0.43 s | 65 MiB | 86 |"), 110.0
			if command == "detect" {
				claim, most = samples.Claim(page, "| `detect` | 0.28 s | 56 MiB | 50 |"), 65
			}
			claim.AtMost(b, "CPU time in seconds", cpu.Median(), mostCPU)
			claim.AtMost(b, "MiB", slices.Max(memory), mostMemory)
			claim.AtMost(b, "requests", slices.Max(sent), most)
			b.ReportMetric(cpu.Median(), "cpu-s")
			b.ReportMetric(slices.Max(memory), "MiB")
			b.ReportMetric(sent.Median(), "requests")
			b.Logf("CPU %.2f s, memory %.0f MiB, requests by what is asked:\n%s", cpu, memory, summary(requests))
		})
	}
}

// check checks that the command lists pods in pages, and that its report matches the requests and
// the cluster.
func check(b *testing.B, requests []audit.Request, got report) {
	b.Helper()
	for _, r := range requests {
		if r.Resource == "pods" && r.Unpaged() {
			b.Errorf("pods are listed without a limit: %s", r.URI)
		}
	}
	if int(got.Requests) != len(requests) || len(requests) == 0 {
		b.Errorf("it reports %d requests, and the API server logged %d", got.Requests, len(requests))
	}
	if missed := got.missed(); missed != "" {
		b.Error(missed)
	}
}

// summary counts the requests by verb, resource and namespace.
func summary(requests []audit.Request) string {
	count := map[string]int{}
	for _, r := range requests {
		what := r.Verb + " " + r.Resource
		if r.Namespace != "" {
			what += " in " + r.Namespace
		}
		if limit := r.Query.Get("limit"); limit != "" {
			what += ", limit " + limit
		}
		for _, selector := range []string{"fieldSelector", "labelSelector"} {
			if value := r.Query.Get(selector); value != "" {
				what += ", " + selector
			}
		}
		count[what]++
	}
	var lines []string
	for what, n := range count {
		lines = append(lines, fmt.Sprintf("%4d %s", n, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// report is the part of the JSON of both commands that the benchmark reads.
type report struct {
	Requests   int64
	Schedulers []struct {
		Replicas []any
		Waiting  struct{ Pods int }
	}
	Nodes any
}

// missed returns a difference between the report and the cluster, and "" if they agree.
func (r report) missed() string {
	if counted, isDetect := r.Nodes.(map[string]any); isDetect {
		if got := fmt.Sprint(counted["count"]); got != fmt.Sprint(nodes) {
			return "detect counts " + got + " nodes"
		}
		return ""
	}
	if listed, _ := r.Nodes.([]any); len(listed) != controlPlanes {
		return fmt.Sprintf("status has the default schedulers of %v", r.Nodes)
	}
	if len(r.Schedulers) != 1 || len(r.Schedulers[0].Replicas) != controlPlanes ||
		r.Schedulers[0].Waiting.Pods != apps/10 {
		return fmt.Sprintf("status has the schedulers %+v", r.Schedulers)
	}
	return ""
}

// fill stores the nodes and the pods.
func fill(ctx context.Context, b *testing.B) {
	b.Helper()
	var objects []metav1.Object
	for i := range nodes {
		node := largecluster.Node(i)
		if i < controlPlanes {
			node.Labels[label] = ""
			node.Spec.Taints = []corev1.Taint{{Key: label, Effect: corev1.TaintEffectNoSchedule}}
		}
		node.Status.NodeInfo.KubeletVersion = apiserver.Release
		objects = append(objects, node)
		for j := range agents {
			pod := bound(largecluster.Pod(i, nodes), node.Name)
			pod.Namespace, pod.Name = metav1.NamespaceSystem, fmt.Sprintf("agent-%d-%s", j, node.Name)
			objects = append(objects, pod)
		}
		if i < controlPlanes {
			objects = append(objects, defaultScheduler(node.Name))
		}
	}
	for i := range apps {
		pod := largecluster.Pod(i, nodes)
		pod.Namespace, pod.Spec.SchedulerName = fmt.Sprintf("team-%02d", i%50), corev1.DefaultSchedulerName
		if pod.Spec.NodeName != "" {
			bound(pod, pod.Spec.NodeName)
		} else {
			pod.Spec.SchedulerName = scheduler
			pod.Status.Phase = corev1.PodPending
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: strings.Repeat("0/5000 nodes are available. ", 10),
			}}
		}
		objects = append(objects, pod)
	}
	if err := server.Store(ctx, objects); err != nil {
		b.Fatal(err)
	}
}

// bound makes a pod run on a node.
func bound(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeName, pod.Spec.SchedulerName = node, corev1.DefaultSchedulerName
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Ready: true, Image: c.Image})
	}
	return pod
}

// defaultScheduler is the mirror pod of kubeadm's kube-scheduler.
func defaultScheduler(node string) *corev1.Pod {
	return bound(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "kube-scheduler-" +
				node, Labels: map[string]string{"component": "kube-scheduler", "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: node},
		},
		Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
			Name: "kube-scheduler", Image: "registry.k8s.io/kube-scheduler:" +
				apiserver.Release, Command: []string{"kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf"},
		}}},
	}, node)
}

// deploy deploys a second scheduler that has a replica on each control-plane node and nothing that
// is wrong.
func deployScheduler(ctx context.Context, b *testing.B) {
	b.Helper()
	client, err := apply.New(server.Config(), apply.Options{})
	if err != nil {
		b.Fatal(err)
	}
	request := &v1alpha1.CustomScheduler{}
	request.Name, request.Namespace = scheduler, metav1.NamespaceSystem
	request.Spec.Credentials, request.Spec.Replicas = deploy.CredentialsServiceAccount, controlPlanes
	plan, err := deploy.NewPlan(request,
		deploy.Facts{Image: "registry.example.com/my-scheduler:v1", Branch: apiserver.Release, Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	record, err := plan.Record()
	if err != nil {
		b.Fatal(err)
	}
	revision, err := client.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: scheduler, Namespace: metav1.NamespaceSystem},
		Objects:      plan.Objects,
		Record:       record,
	})
	if err == nil {
		_, err = client.Apply(ctx, plan.Objects)
	}
	if err == nil {
		err = client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
	}
	var pods []metav1.Object
	for i := range controlPlanes {
		pod := bound(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: fmt.Sprintf("%s-%d", scheduler, i),
				Labels: map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: scheduler},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: ownership.Scheduler,
				Image: "registry.example.com/my-scheduler:v1"}}},
		}, largecluster.NodeName(i))
		pods = append(pods, pod)
	}
	holder, seconds, now := scheduler+"-0_1", int32(3600), metav1.NowMicro()
	_, leaseErr := server.Client(b).CoordinationV1().Leases(metav1.NamespaceSystem).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: scheduler},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now,
			RenewTime: &now},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, leaseErr, server.Store(ctx, pods)); err != nil {
		b.Fatal(err)
	}
}
