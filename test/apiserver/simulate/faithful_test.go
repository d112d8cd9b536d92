//go:build linux && (cases || releases)

package simulate

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// faithful is a test case: a cluster, the objects that are added to it, and a scheduler. The test
// simulates it and runs it for real.
type faithful struct {
	cluster, added string
	// configuration is the scheduler's configuration without apiVersion and kind. If it is empty,
	// the scheduler has no configuration file.
	configuration string
	// with are the plugins that are compiled in.
	with []string
	// ties is set if several nodes can be the best for a pod. Then the pods are created one after the
	// other, see [world.follow].
	ties bool
	// pods are added, unplaced of them get no node, and evicted pods of the cluster make room.
	pods, unplaced, evicted int
}

// The default scheduler without a configuration: a pod that goes to another node than in the
// simulation does so because both are equally good.
func TestSimulationAgreesWithTheDefaultScheduler(t *testing.T) {
	t.Parallel()
	tenShapes().agrees(t, apiserver.Release)
}

// agrees simulates and schedules for real, and compares.
func (f *faithful) agrees(t *testing.T, release string) {
	w := newWorld(t, release, f.cluster)
	simulated := f.simulate(t, w)
	want := map[string]string{}
	for _, p := range simulated.Placements {
		want[keyOf(p.Name)] = p.Node
	}
	for _, u := range simulated.Unplaced {
		want[keyOf(u.Name)] = ""
	}
	if len(want) != f.pods || len(simulated.Unplaced) != f.unplaced || len(simulated.Evicted) != f.evicted {
		t.Fatalf("the simulation has %d pods of %d, %d unplaced, want %d: %v; %d evicted, want %d: %v", len(want), f.pods,
			len(simulated.Unplaced), f.unplaced, simulated.Unplaced, len(simulated.Evicted), f.evicted, simulated.Evicted)
	}
	w.control(t)
	pods := w.add(t, f.added) // the scheduler reads Services, ReplicaSets and claims, but does not say when it has
	scheduler := f.scheduler(t, w)
	scheduler.Start()
	w.awaitCache(t, scheduler) // before 1.28 it starts to schedule earlier
	w.reportNodes(t, scheduler)
	if f.ties {
		w.follow(t, scheduler, pods, want)
	} else {
		w.createAll(t, pods, want)
	}
	if diff := cmp.Diff(want, w.placed(t, pods)); diff != "" {
		t.Errorf("nodes of the pods (-simulated +real):\n%s", diff)
	}
	var evicted []string
	for _, p := range simulated.Evicted {
		evicted = append(evicted, p.Name)
	}
	if diff := cmp.Diff(evicted, w.gone(t, f.cluster)); diff != "" {
		t.Errorf("evicted pods (-simulated +real):\n%s", diff)
	}
}

// reportNodes updates the nodes as their kubelets do and waits until the scheduler has handled the
// updates: up to 1.28 it counts images then. It handles the events of nodes in order, so that its
// cache has a later node only after the updates.
func (w *world) reportNodes(t *testing.T, scheduler *controlplane.Process) {
	t.Helper()
	nodes := w.Kube.CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range list.Items {
		patch := []byte(`{"metadata": {"annotations": {"reported": "true"}}}`)
		_, err := nodes.Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	last := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "last"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := nodes.Create(t.Context(), last, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitCache(t, scheduler)
	if err := nodes.Delete(t.Context(), last.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitCache(t, scheduler)
}

// simulate runs `pmk-sched simulate add` on a snapshot of the world.
func (f *faithful) simulate(t *testing.T, w *world) report.Report {
	t.Helper()
	args := []string{"simulate", "add", "-m", run.WriteFile(t, "added.yaml", f.added), "--snapshot", w.snapshot(t),
		"--branch", w.Release.String(), "--limit", "0", "-o", "json"}
	if f.configuration != "" {
		args = append(args, "--config", run.WriteFile(t, "scheduler.yaml", configurationHead(w.Release)+f.configuration))
	}
	for _, plugin := range f.with {
		args = append(args, "--with", plugin)
	}
	r := run.Decode[report.Report](t, run.PMKSched(t, args...).OK(t).Stdout)
	slices.SortFunc(r.Evicted, func(a, b report.Placement) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// configurationHead is the head of a configuration for a release, in its own API.
func configurationHead(release versions.Release) string {
	version := "v1"
	switch {
	case release.Minor < 22:
		version = "v1beta1"
	case release.Minor < 25:
		version = "v1beta3"
	}
	return "apiVersion: kubescheduler.config.k8s.io/" + version + "\nkind: KubeSchedulerConfiguration\n"
}

// scheduler returns the release's kube-scheduler, configured as in a cluster and not by pmk-sched.
func (f *faithful) scheduler(t *testing.T, w *world) *controlplane.Process {
	t.Helper()
	args := []string{"--secure-port=0", "--leader-elect=false", "--kubeconfig=" + w.Kubeconfig}
	if w.Release.Minor < 23 {
		args = append(args, "--port=0")
	}
	if f.ties {
		args = append(args, "--v=10") // the scores
	} else {
		args = append(args, "--v=3")
	}
	if f.configuration != "" {
		head := configurationHead(w.Release) +
			fmt.Sprintf("clientConnection: {kubeconfig: %q}\nleaderElection: {leaderElect: false}\n", w.Kubeconfig)
		if w.Release.Minor < 23 {
			head += fmt.Sprintf("healthzBindAddress: %[1]s\nmetricsBindAddress: %[1]s\n", controlplane.FreeAddress(t))
		}
		args = append(args, "--config="+run.WriteFile(t, "real.yaml", head+f.configuration))
	}
	if len(f.with) == 0 {
		program, err := controlplane.Build(t.Context(), build.Options{Release: w.Release})
		if err != nil {
			t.Fatal(err)
		}
		return controlplane.NewProcess(t, program, args...)
	}
	program := filepath.Join(t.TempDir(), "kube-scheduler")
	command := []string{"build", "--branch", w.Release.String(), "--binary", program}
	for _, plugin := range f.with {
		command = append(command, "--with", plugin)
	}
	run.PMKSched(t, command...).OK(t)
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	return controlplane.NewProcess(t, program, args...)
}

// createAll creates the pods at once, and waits until the scheduler has decided about all of them.
func (w *world) createAll(t *testing.T, pods []addedPod, want map[string]string) {
	t.Helper()
	for _, p := range pods {
		w.create(t.Context(), t, p.pod)
	}
	run.Eventually(t, "the scheduler has decided about all pods", func(ctx context.Context) (bool, string) {
		list, err := w.Kube.CoreV1().Pods(pods[0].pod.GetNamespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			node, ok := decided(&list.Items[i])
			if node == "" && (!ok || want[keyOf(list.Items[i].Name)] != "") {
				return false, fmt.Sprintf("%s has no node, %v", list.Items[i].Name, list.Items[i].Status.Conditions)
			}
		}
		return true, ""
	})
}

// follow creates one pod after the other. A pod that gets another node than in the simulation must
// have had several best nodes: both have the same highest score in the real scheduler's log. It is
// then bound to the node of the simulation, so that the next pod finds the same state.
func (w *world) follow(t *testing.T, scheduler *controlplane.Process, pods []addedPod, want map[string]string) {
	t.Helper()
	ties := 0
	for _, p := range pods {
		w.create(t.Context(), t, p.pod)
		node := w.await(t, p)
		if node == want[p.key] {
			continue
		}
		total := w.scores(t, scheduler, p)
		best := slices.Max(append(slices.Collect(maps.Values(total)), -1))
		simulated, ok := total[want[p.key]]
		if real, found := total[node]; !ok || !found || real != best || simulated != best {
			t.Fatalf(
				"%s goes to %q with score %d, and to %q in the simulation, with score %d; all: %v\nsimulated: %v\nwarnings of "+
					"the scheduler:\n%s",
				p.key, node, real, want[p.key], simulated, total, want, strings.Join(logWarning.FindAllString(scheduler.Log(), -1),
					"\n"))
		}
		ties++
		w.move(t, scheduler, p, want[p.key])
	}
	t.Logf("%d of %d pods were on another of the best nodes", ties, len(pods))
}

// await waits for the scheduler's decision about a pod, and returns its node.
func (w *world) await(t *testing.T, p addedPod) (node string) {
	t.Helper()
	var pod *corev1.Pod
	run.Eventually(t, "the scheduler has decided about "+p.key, func(ctx context.Context) (ok bool, seen string) {
		var err error
		if pod, err = w.Kube.CoreV1().Pods(p.pod.GetNamespace()).Get(ctx, p.pod.GetName(), metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		node, ok = decided(pod)
		return ok, fmt.Sprint(pod.Status.Conditions)
	})
	return node
}

// scores returns the scores of the nodes for a pod, from the log of the scheduler.
func (w *world) scores(t *testing.T, scheduler *controlplane.Process, p addedPod) map[string]int64 {
	t.Helper()
	name := p.pod.GetNamespace() + "/" + p.pod.GetName()
	log := scheduler.Log()
	from := strings.LastIndex(log, "Attempting to schedule pod")
	for ; from > 0 && !strings.Contains(log[from:min(len(log), from+200)], name); from = strings.LastIndex(log[:from],
		"Attempting to schedule pod") {
	}
	if from < 0 {
		return nil
	}
	scores, err := decision.ParseLog(strings.NewReader(log[strings.LastIndex(log[:from], "\n")+1:]), p.pod.GetNamespace(),
		p.pod.GetName())
	if err != nil {
		t.Fatal(err)
	}
	if scores == nil {
		return nil
	}
	return scores.Total
}

// move binds a pod to another node and waits until the scheduler's cache has it there.
func (w *world) move(t *testing.T, scheduler *controlplane.Process, p addedPod, node string) {
	t.Helper()
	now := int64(0)
	pods := w.Kube.CoreV1().Pods(p.pod.GetNamespace())
	if err := pods.Delete(t.Context(), p.pod.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	moved := p.pod.DeepCopy()
	if err := unstructured.SetNestedField(moved.Object, node, "spec", "nodeName"); err != nil {
		t.Fatal(err)
	}
	w.create(t.Context(), t, moved)
	w.awaitCache(t, scheduler)
}

// logWarning matches a line of klog's format that is a warning or an error.
var logWarning = regexp.MustCompile(`(?m)^[EW]\d{4} .*$`)

// awaitCache waits until the scheduler's cache contains exactly the nodes and bound pods of the API
// server. Up to 1.34 kube-scheduler handles them independently of new pods, so that the next pod
// can be scored before.
func (w *world) awaitCache(t *testing.T, scheduler *controlplane.Process) {
	t.Helper()
	want, pending := w.cacheable(t)
	scheduler.AwaitCache(func(cached map[string]bool) (bool, string) {
		maps.DeleteFunc(cached, func(name string, _ bool) bool { return pending[name] })
		diff := cmp.Diff(want, cached)
		return diff == "", "(-API server +scheduler):\n" + diff
	})
}

// cacheable returns the names of the nodes and the UIDs of the bound pods, and the UIDs of the
// other pods, which a scheduler may have assumed or nominated.
func (w *world) cacheable(t *testing.T) (bound, pending map[string]bool) {
	t.Helper()
	nodes, err := w.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := w.Kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bound, pending = map[string]bool{}, map[string]bool{}
	for i := range nodes.Items {
		bound[nodes.Items[i].Name] = true
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName == "" {
			pending[string(pod.UID)] = true
		} else {
			bound[string(pod.UID)] = true
		}
	}
	return bound, pending
}

// placed returns the nodes of the pods.
func (w *world) placed(t *testing.T, pods []addedPod) map[string]string {
	t.Helper()
	nodes := map[string]string{}
	for _, p := range pods {
		pod, err := w.Kube.CoreV1().Pods(p.pod.GetNamespace()).Get(t.Context(), p.pod.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("read a pod that was added: %v", err)
			continue
		}
		nodes[p.key] = pod.Spec.NodeName
	}
	return nodes
}

// gone returns the pods of manifests that are not there any more.
func (w *world) gone(t *testing.T, manifests string) (names []string) {
	t.Helper()
	list, err := w.Kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, pod := range list.Items {
		left[pod.Namespace+"/"+pod.Name] = true
	}
	for _, o := range decodeManifests(t, manifests) {
		if o.GetKind() == "Pod" && !left[o.GetNamespace()+"/"+o.GetName()] {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return names
}
