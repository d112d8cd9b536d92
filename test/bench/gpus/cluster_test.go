//go:build linux

package gpus

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/versions"
)

// cluster is an API server of a release, and the release's kube-scheduler with the plugin.
type cluster struct {
	*controlplane.Plane
	server *apiserver.Server
	binary string
}

func startCluster(b *testing.B, release string) cluster {
	b.Helper()
	parsed, err := versions.Parse(release)
	if err != nil {
		b.Fatal(err)
	}
	binaries, err := apiserver.BinariesOf(b.Context(), parsed)
	if err != nil {
		b.Fatal(err)
	}
	binary, err := controlplane.Build(b.Context(),
		build.Options{Release: parsed, Plugins: []plugins.Plugin{{Builtin: "gpupacking"}}, Sources: pmksched.Sources})
	if err != nil {
		b.Fatal(err)
	}
	// Before 1.32 the watch cache lists pods in any order, and the scheduler would not try them in the
	// order in which they are drawn.
	server := apiserver.StartFor(b, binaries, "--watch-cache-sizes=pods#0")
	return cluster{controlplane.Of(b, server, release), server, binary}
}

// fill fills the cluster with a side, and returns which pods are bound. The pods exist before the
// scheduler starts.
func (c cluster) fill(b *testing.B, s side, d draw) []bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Minute)
	defer cancel()
	started := time.Now()
	c.Namespace(ctx, b, s.name)
	defer c.server.Clear(b)
	var objects []metav1.Object
	for _, n := range d.nodes {
		objects = append(objects, n.DeepCopy())
	}
	never := corev1.PreemptNever // all pods have the same priority, and the search takes time
	for i, from := range d.pods {
		// the scheduler lists them in this order
		pod := controlplane.Pod(s.name, "", podName(i))
		pod.Namespace, pod.Status.Phase, pod.Spec.NodeSelector = s.name, corev1.PodPending, nil
		pod.Spec.PreemptionPolicy = &never
		pod.Spec.Affinity, pod.Spec.Containers[0].Resources = from.Spec.Affinity, from.Spec.Containers[0].Resources
		objects = append(objects, pod)
	}
	if err := c.server.Store(ctx, objects); err != nil {
		b.Fatal(err)
	}
	stored := time.Now()
	process := c.NewScheduler(b, controlplane.Scheduler{Name: s.name, Plugins: []string{"GPUPacking"}, Source: s.source(),
		Binary: c.binary, Args: []string{"--v=1"}})
	process.Start()
	defer process.Kill()
	placed := c.await(ctx, b, s.name, len(d.pods), process)
	b.Logf("%s: %d pods stored in %s, tried in %s", s.name, len(d.pods), stored.Sub(started).Round(time.Second),
		time.Since(stored).Round(time.Second))
	return placed
}

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// await waits until the scheduler has tried all pods of a namespace, the last one last, and returns
// which ones are bound.
func (c cluster) await(ctx context.Context, b *testing.B, namespace string, pods int,
	process *controlplane.Process) []bool {
	b.Helper()
	isTried := func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0 }
	pause := func() {
		select {
		case <-ctx.Done():
			b.Fatalf("%s has not tried all of %d pods:\n%s", namespace, pods, process.Log())
		case <-time.After(time.Second):
		}
	}
	for {
		last, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, podName(pods-1), metav1.GetOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if isTried(last) {
			break
		}
		pause()
	}
	for {
		list, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
		if err != nil {
			b.Fatal(err)
		}
		placed := slices.Repeat([]bool{true}, pods)
		for i := range list.Items {
			var index int
			if _, err := fmt.Sscanf(list.Items[i].Name, "pod-%d", &index); err != nil {
				b.Fatal(err)
			}
			placed[index] = false
		}
		if !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return !isTried(&pod) }) {
			return placed
		}
		pause()
	}
}
