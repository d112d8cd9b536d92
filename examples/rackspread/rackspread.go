// Package rackspread is an example: it spreads an application's pods over racks.
package rackspread

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "RackSpread"

// app is the pod label with the application.
const app = "app.kubernetes.io/name"

// RackSpread scores nodes by the pods in their rack.
type RackSpread struct {
	nodes scheduler.NodeLister

	mu    sync.RWMutex
	racks map[string][]string // the nodes in each rack
}

// New returns the plugin. It reads Rack custom resources in example.com/v1 until ctx is done.
func New(ctx context.Context, _ scheduler.Arguments, h scheduler.Handle) (*RackSpread, error) {
	r := &RackSpread{nodes: h.Nodes(), racks: map[string][]string{}}
	return r, customresource.Watch(ctx, h, customresource.Options{
		Plugin: Name, Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "racks"},
		Missing: "there is nothing to spread over", Set: r.setRack, Delete: r.deleteRack,
	})
}

// setRack reads a rack's nodes. An invalid rack is deleted after the error.
func (r *RackSpread) setRack(rack *unstructured.Unstructured) error {
	nodes, _, err := unstructured.NestedStringSlice(rack.Object, "spec", "nodes")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.racks[rack.GetName()] = nodes
	return err
}

func (r *RackSpread) deleteRack(_, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.racks, name)
}

// Name returns the plugin's name.
func (r *RackSpread) Name() string { return Name }

// PreScore counts the application's pods in each rack, once for a pod, for Score.
func (r *RackSpread) PreScore(_ context.Context, state scheduler.State, pod *corev1.Pod,
	_ []scheduler.NodeInfo) *scheduler.Status {
	if pod.Labels[app] == "" {
		return scheduler.Skip()
	}
	counts := map[string]int64{} // by node
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, names := range r.racks {
		sum := int64(0)
		for _, name := range names {
			if node, err := r.nodes.Get(name); err == nil { // a rack may name nodes that do not exist
				for i := 0; i < node.PodCount(); i++ {
					if other := node.Pod(i); other.Namespace == pod.Namespace && other.Labels[app] == pod.Labels[app] {
						sum++
					}
				}
			}
		}
		for _, name := range names {
			counts[name] = sum
		}
	}
	state.Write(Name, counts)
	return nil
}

// Score prefers racks with few of the application's pods.
func (r *RackSpread) Score(_ context.Context, state scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	written, _ := state.Read(Name)
	counts, _ := written.(map[string]int64)
	return scheduler.MaxNodeScore / (1 + counts[node.Node().Name]), nil
}

// Sign signs pods without an application only: other pods change the scores when they are placed.
func (r *RackSpread) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	if pod.Labels[app] != "" {
		return nil, scheduler.Unschedulable("pods of an application are spread over racks")
	}
	return nil, nil
}
