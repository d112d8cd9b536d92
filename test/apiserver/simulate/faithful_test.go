//go:build linux

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

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/simulate/cycle"
	"github.com/pmk-sched/pmk-sched/internal/simulate/report"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// faithful is a cluster, what is added to it, and the scheduler that schedules it: in a simulation, and for real.
type faithful struct {
	cluster, added string
	// configuration is the scheduler's file without its head; empty: the scheduler has no file.
	configuration string
	// with are the plugins that are compiled in.
	with []string
	// ties is set if several nodes can be the best for a pod. Then the pods are created one after the other, see [world.follow].
	ties bool
	// pods are added, unplaced of them get no node, and evicted pods of the cluster make room.
	pods, unplaced, evicted int
}

// The default scheduler without a configuration: a pod that goes to another node than in the simulation does so because both are equally good.
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
	nodes, running := nodesAndPods(decodeManifests(t, f.cluster)) // before 1.28 it starts to schedule earlier
	awaitSeen(t, scheduler, 0, "add event for node", nodes...)
	awaitSeen(t, scheduler, 0, "add event for scheduled pod", running...)
	w.reportNodes(t, scheduler, nodes)
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

// reportNodes updates the nodes as their kubelets do, and waits until the scheduler knows: up to 1.28 it counts the images of a node then. It hears of the
// nodes one after the other.
func (w *world) reportNodes(t *testing.T, scheduler *controlplane.Process, nodes []*unstructured.Unstructured) {
	t.Helper()
	for _, node := range nodes {
		patch := []byte(`{"metadata": {"annotations": {"reported": "true"}}}`)
		if _, err := w.of(node).Patch(t.Context(), node.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	last := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "last"}, "spec": map[string]any{"unschedulable": true},
	}}
	w.create(t.Context(), t, last)
	awaitSeen(t, scheduler, 0, "add event for node", last)
	if err := w.of(last).Delete(t.Context(), last.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitSeen(t, scheduler, 0, "delete event for node", last)
}

// nodesAndPods returns those of objects.
func nodesAndPods(objects []*unstructured.Unstructured) (nodes, pods []*unstructured.Unstructured) {
	for _, o := range objects {
		switch o.GetKind() {
		case "Node":
			nodes = append(nodes, o)
		case "Pod":
			pods = append(pods, o)
		}
	}
	return nodes, pods
}

// simulate runs `pmk-sched simulate add` on a snapshot of the world.
func (f *faithful) simulate(t *testing.T, w *world) report.Report {
	t.Helper()
	args := []string{"simulate", "add", "-f", run.WriteFile(t, "added.yaml", f.added), "--snapshot", w.snapshot(t), "--branch", w.Release.String(), "--limit", "0", "-o", "json"}
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

// scheduler returns the release's kube-scheduler as it is in a cluster. pmk-sched does not configure it.
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
		head := configurationHead(w.Release) + fmt.Sprintf("clientConnection: {kubeconfig: %q}\nleaderElection: {leaderElect: false}\n", w.Kubeconfig)
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

// follow creates one pod after the other. A pod that gets another node than in the simulation must have had the choice: the real scheduler's log has the
// same highest score for both. It is then bound to the node of the simulation, so that the next pod finds the same state.
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
			t.Fatalf("%s goes to %q with score %d, and to %q in the simulation, with score %d; all: %v\nsimulated: %v", p.key, node, real, want[p.key], simulated, total, want)
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
	for ; from > 0 && !strings.Contains(log[from:min(len(log), from+200)], name); from = strings.LastIndex(log[:from], "Attempting to schedule pod") {
	}
	if from < 0 {
		return nil
	}
	scores, err := cycle.ParseLog(strings.NewReader(log[strings.LastIndex(log[:from], "\n")+1:]), p.pod.GetNamespace(), p.pod.GetName())
	if err != nil {
		t.Fatal(err)
	}
	if scores == nil {
		return nil
	}
	return scores.Total
}

// move binds a pod to another node, and waits until the scheduler knows.
func (w *world) move(t *testing.T, scheduler *controlplane.Process, p addedPod, node string) {
	t.Helper()
	from := len(scheduler.Log())
	now := int64(0)
	pods := w.Kube.CoreV1().Pods(p.pod.GetNamespace())
	if err := pods.Delete(t.Context(), p.pod.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	awaitSeen(t, scheduler, from, "delete event for scheduled pod", p.pod)
	from = len(scheduler.Log())
	moved := p.pod.DeepCopy()
	if err := unstructured.SetNestedField(moved.Object, node, "spec", "nodeName"); err != nil {
		t.Fatal(err)
	}
	w.create(t.Context(), t, moved)
	awaitSeen(t, scheduler, from, "add event for scheduled pod", moved)
}

// awaitSeen waits until the log of a scheduler, from an offset on, has events of objects. The messages of 1.20 are not structured.
func awaitSeen(t *testing.T, scheduler *controlplane.Process, from int, event string, objects ...*unstructured.Unstructured) {
	t.Helper()
	run.Eventually(t, "the scheduler has seen: "+event, func(context.Context) (bool, string) {
		log := scheduler.Log()[from:]
		for _, o := range objects {
			name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
			if !regexp.MustCompile(`(?i)` + event + `("? \w+=)? ?"?` + regexp.QuoteMeta(name) + `["\s]`).MatchString(log) {
				return false, "not " + name
			}
		}
		return true, ""
	})
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
	_, pods := nodesAndPods(decodeManifests(t, manifests))
	for _, o := range pods {
		if !left[o.GetNamespace()+"/"+o.GetName()] {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return names
}
