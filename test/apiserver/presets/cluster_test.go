//go:build linux

package presets

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// cluster is the part of the API server's objects that one scheduler of the test uses: its pods run on its nodes only.
type cluster struct {
	t    *testing.T
	ctx  context.Context
	name string // of the scheduler, the namespace, and the label on its nodes
	log  *run.Output
	args []string
}

// newCluster makes what a kube-scheduler with the rendered preset needs, for pods that name it.
func newCluster(t *testing.T, preset, scenario string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*run.Patience)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx, name: preset + "-" + scenario, log: &run.Output{}}
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "config.yaml")
	c.must(server.WriteKubeconfig(kubeconfig, ""))
	rendered, err := profiles.Render(profiles.Request{Release: release, SchedulerName: c.name, Kubeconfig: kubeconfig, Preset: preset})
	c.must(err)
	c.must(os.WriteFile(config, rendered.YAML, 0o600))
	_, err = kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}, metav1.CreateOptions{})
	c.must(err)
	_, err = kube.CoreV1().ServiceAccounts(c.name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	c.must(err)
	c.args = []string{"--config=" + config, "--secure-port=0", "--v=2"}
	return c
}

// start starts the scheduler, which ends with the test, and returns when it knows every node that was made before. A scheduler
// before v1.28 schedules as soon as its informers have listed, while their handlers still add nodes to its cache. A node that is
// made after it has listed is added last.
func (c *cluster) start() {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.ctx)
	process := exec.CommandContext(ctx, scheduler, c.args...)
	process.Stdout, process.Stderr = c.log, c.log
	c.must(process.Start())
	c.t.Cleanup(func() {
		stop()
		_ = process.Wait() // it was killed
		if c.t.Failed() {
			c.t.Logf("kube-scheduler wrote:\n%s", c.log)
		}
	})
	for _, name := range []string{"listed", "last"} {
		c.node(name, 0, map[string]string{"cluster": c.name + "-" + name})
		pod := c.pod(name, 1)
		pod.Spec.NodeSelector["cluster"] += "-" + name
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

// amounts are so many percent of a node, of CPU and memory alike.
func amounts(percent int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(100*percent, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(percent<<26, resource.BinarySI),
	}
}

// node makes a node of which so many percent are taken.
func (c *cluster) node(name string, taken int64, labels map[string]string) {
	c.t.Helper()
	c.must(c.makeNode(name, taken, labels))
}

func (c *cluster) makeNode(name string, taken int64, labels map[string]string) error {
	name = c.name + "-" + name
	all := map[string]string{"cluster": c.name, corev1.LabelHostname: name}
	for key, value := range labels {
		all[key] = value
	}
	whole := amounts(100)
	whole[corev1.ResourcePods] = resource.MustParse("110")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Status: corev1.NodeStatus{
		Capacity: whole, Allocatable: whole, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	made, err := kube.CoreV1().Nodes().Create(c.ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if taken > 0 {
		filler := c.pod("filler-"+name, taken)
		filler.Spec.NodeName, filler.Spec.NodeSelector = name, nil
		if _, err := kube.CoreV1().Pods(c.name).Create(c.ctx, filler, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	made.Spec.Taints = nil // admission taints every new node as not ready
	_, err = kube.CoreV1().Nodes().Update(c.ctx, made, metav1.UpdateOptions{})
	return err
}

// nodes makes that many empty nodes, several at a time.
func (c *cluster) nodes(count int) {
	c.t.Helper()
	var all errgroup.Group
	all.SetLimit(20)
	for i := range count {
		all.Go(func() error { return c.makeNode(strconv.Itoa(i), 0, nil) })
	}
	c.must(all.Wait())
	// A scheduler lists nodes from the API server's cache, which may be behind.
	run.Eventually(c.t, "the cache has all nodes without a taint", func(ctx context.Context) (bool, string) {
		list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "cluster=" + c.name, ResourceVersion: "0"})
		if err != nil {
			return false, err.Error()
		}
		ready := 0
		for _, node := range list.Items {
			if len(node.Spec.Taints) == 0 {
				ready++
			}
		}
		return ready == count, fmt.Sprint(ready)
	})
}

// pod is one that takes so many percent of a node.
func (c *cluster) pod(name string, percent int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{
		SchedulerName: c.name, NodeSelector: map[string]string{"cluster": c.name},
		Containers: []corev1.Container{{Name: "c", Image: "localhost/pause", Resources: corev1.ResourceRequirements{Requests: amounts(percent)}}},
	}}
}

// place creates a pod and returns the node that it is bound to.
func (c *cluster) place(pod *corev1.Pod) string {
	c.t.Helper()
	_, err := kube.CoreV1().Pods(c.name).Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err)
	var node string
	run.Eventually(c.t, "pod "+pod.Name+" is bound", func(ctx context.Context) (bool, string) {
		got, err := kube.CoreV1().Pods(c.name).Get(ctx, pod.Name, metav1.GetOptions{})
		c.must(err)
		node = got.Spec.NodeName
		return node != "", ""
	})
	return node[len(c.name)+1:]
}
