//go:build linux

package plugins

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
)

// coresOfZone is how many cores a zone has.
const coresOfZone = 4

// newMachine returns a node of one of several kinds: a third has no topology. The caller holds
// w.mu.
func (w *world) newMachine() *machine {
	on := &machine{name: w.nameOf("model-node"), wake: make(chan struct{}, 1)}
	on.room = sums{corev1.ResourceCPU: 2 * coresOfZone * 1000, corev1.ResourceMemory: 1 << 40, corev1.ResourcePods: 110}
	if w.chance(3) {
		return on
	}
	on.zones = []int64{coresOfZone, coresOfZone}
	on.written = slices.Clone(on.zones)
	if !w.chance(3) {
		on.room[gpuMilli] = w.between(1, 4) * wholeDevice
	}
	return on
}

// createNode adds a node if there are not too many.
func (w *world) createNode(ctx context.Context) func() {
	if len(w.alive()) >= mostNodes {
		return nil
	}
	on := w.newMachine()
	w.machines[on.name] = on
	w.note(fmt.Sprintf("create node %s with %v", on.name, on.room), on.name)
	return func() { w.register(ctx, on) }
}

// addNode adds a node now.
func (w *world) addNode(ctx context.Context) {
	w.mu.Lock()
	do := w.createNode(ctx)
	w.mu.Unlock()
	do()
}

// register creates a node, with its topology before it can get pods, and starts its agent.
func (w *world) register(ctx context.Context, on *machine) {
	if on.zones != nil {
		_, err := w.topologies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
			"metadata": map[string]any{"name": on.name}, "zones": w.zonesOf(on.written),
			"attributes": []any{map[string]any{"name": "topologyManagerPolicy", "value": "single-numa-node"},
				map[string]any{"name": "topologyManagerScope", "value": "container"}},
		}}, metav1.CreateOptions{})
		w.tolerate(ctx, err, "create the topology of "+on.name)
		w.background.Add(1)
		go func() {
			defer w.background.Done()
			w.agent(ctx, on)
		}()
	}
	room := corev1.ResourceList{}
	for name, amount := range on.room {
		if room[name] = *resource.NewQuantity(amount, resource.DecimalSI); name == corev1.ResourceCPU {
			room[name] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
		}
	}
	_, err := w.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: on.name,
			Labels: map[string]string{controlplane.GroupLabel: w.name, corev1.LabelHostname: on.name}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}, metav1.CreateOptions{})
	w.tolerate(ctx, err, "create node "+on.name)
	// The admission plugin TaintNodesByCondition taints new nodes.
	w.patchNode(ctx, on.name, `{"spec": {"taints": null}}`)
	w.mu.Lock()
	defer w.mu.Unlock()
	on.registered = true
}

func (w *world) patchNode(ctx context.Context, name, patch string) {
	_, err := w.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.tolerate(ctx, err, "patch node "+name)
}

// drain cordons a node, deletes its pods, and removes it, unless there are too few.
func (w *world) drain(ctx context.Context) func() {
	alive := w.alive()
	on := w.machines[alive[w.random.IntN(len(alive))]]
	if len(alive) <= fewestNodes || !on.registered {
		return nil
	}
	on.gone = true
	on.nudge()
	w.note("drain node "+on.name, on.name)
	return func() {
		w.patchNode(ctx, on.name, `{"spec": {"unschedulable": true}}`)
		w.mu.Lock()
		removeAll := w.deletePods(ctx, "drain", w.on(on.name)...)
		w.mu.Unlock()
		removeAll()
		err := w.Kube.CoreV1().Nodes().Delete(ctx, on.name, metav1.DeleteOptions{})
		w.tolerate(ctx, err, "delete node "+on.name)
		if on.zones != nil {
			err := w.topologies.Delete(ctx, on.name, metav1.DeleteOptions{})
			w.tolerate(ctx, err, "delete the topology of "+on.name)
		}
	}
}
