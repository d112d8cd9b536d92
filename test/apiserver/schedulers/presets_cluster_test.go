//go:build linux

package schedulers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// cluster is the part of the API server's objects that one scheduler of the test uses: its pods run
// on its nodes only.
type cluster struct {
	*controlplane.Plane
	t         *testing.T
	ctx       context.Context
	name      string // of the scheduler, the namespace, and the label on its nodes
	scheduler *controlplane.Process
}

// newCluster creates a namespace, and returns it with a kube-scheduler for the rendered preset,
// which start starts.
func newCluster(t *testing.T, preset, scenario string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*run.Patience)
	t.Cleanup(cancel)
	c := &cluster{Plane: controlplane.On(t, server), t: t, ctx: ctx, name: preset + "-" + scenario}
	config := filepath.Join(t.TempDir(), "config.yaml")
	rendered, err := profiles.Render(profiles.Request{Release: c.Release, SchedulerName: c.name, Kubeconfig: c.Kubeconfig,
		Preset: preset})
	c.must(err)
	c.must(os.WriteFile(config, rendered.YAML, 0o600))
	program, err := controlplane.Build(t.Context(), build.Options{Release: c.Release})
	c.must(err)
	c.Namespace(ctx, t, c.name)
	c.scheduler = controlplane.NewProcess(t, program, "--config="+config, "--secure-port=0", "--v=2")
	return c
}

// start starts the scheduler, which ends with the test, and returns when it knows every node that
// was made before. A scheduler before v1.28 schedules as soon as its informers have listed, while
// their handlers still add nodes to its cache. A node that is made after it has listed is added
// last.
func (c *cluster) start() {
	c.t.Helper()
	c.scheduler.Start()
	for _, name := range []string{"listed", "last"} {
		c.node(name, 0, map[string]string{controlplane.GroupLabel: c.name + "-" + name})
		pod := c.pod(name, 1)
		pod.Spec.NodeSelector[controlplane.GroupLabel] += "-" + name
		pod.Labels = nil
		c.place(pod)
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// amounts returns a percentage of a node's CPU and memory.
func amounts(percent int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(100*percent, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(percent<<26, resource.BinarySI),
	}
}

// node creates a node of which taken percent are requested by a pod.
func (c *cluster) node(name string, taken int64, labels map[string]string) {
	c.t.Helper()
	node := c.newNode(name, labels)
	objects := []metav1.Object{node}
	if taken > 0 {
		filler := c.pod("filler-"+node.Name, taken)
		filler.Namespace, filler.Spec.NodeName, filler.Spec.NodeSelector = c.name, node.Name, nil
		objects = append(objects, filler)
	}
	c.must(server.Store(c.ctx, objects))
}

// newNode returns an empty node, without the taint that admission gives to new nodes.
func (c *cluster) newNode(name string, labels map[string]string) *corev1.Node {
	name = c.name + "-" + name
	all := map[string]string{controlplane.GroupLabel: c.name, corev1.LabelHostname: name}
	maps.Copy(all, labels)
	whole := amounts(100)
	whole[corev1.ResourcePods] = resource.MustParse("110")
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Status: corev1.NodeStatus{
		Capacity: whole, Allocatable: whole,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// nodes makes that many empty nodes.
func (c *cluster) nodes(count int) {
	c.t.Helper()
	var all []metav1.Object
	for i := range count {
		all = append(all, c.newNode(strconv.Itoa(i), nil))
	}
	c.must(server.Store(c.ctx, all))
	// A scheduler lists nodes from the API server's cache, which may be behind.
	run.Eventually(c.t, "the cache has all nodes", func(ctx context.Context) (bool, string) {
		list, err := c.Kube.CoreV1().Nodes().List(ctx,
			metav1.ListOptions{LabelSelector: controlplane.GroupLabel + "=" + c.name, ResourceVersion: "0"})
		if err != nil {
			return false, err.Error()
		}
		return len(list.Items) == count, fmt.Sprint(len(list.Items))
	})
}

// pod returns a pod that requests percent of a node.
func (c *cluster) pod(name string, percent int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			SchedulerName: c.name, NodeSelector: map[string]string{controlplane.GroupLabel: c.name},
			Containers: []corev1.Container{{Name: "c", Image: "localhost/pause",
				Resources: corev1.ResourceRequirements{Requests: amounts(percent)}}},
		}}
}

// place creates a pod and returns the node that it is bound to.
func (c *cluster) place(pod *corev1.Pod) string {
	c.t.Helper()
	return c.Place(c.ctx, c.t, c.name, pod)[len(c.name)+1:]
}
