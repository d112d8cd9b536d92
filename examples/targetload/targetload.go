// Package targetload is an example: it fills nodes up to a CPU load, as the metrics server measures
// it, and spreads pods over nodes above it.
package targetload

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "TargetLoad"

// TargetLoad scores nodes by their load.
type TargetLoad struct {
	// Target is the plugin's argument: the CPU load of the best nodes in percent, 1 to 99.
	Target int64 `json:"target"`
	handle scheduler.Handle
	mu     sync.Mutex
	// used is each node's measured CPU in millicores. placed is the sum of pod requests placed since
	// then.
	used, placed map[string]int64
}

// New returns the plugin. It reads metrics until ctx is done.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*TargetLoad, error) {
	p := &TargetLoad{Target: 40, handle: h, placed: map[string]int64{}}
	if err := args.Decode(p); err != nil {
		return nil, err
	}
	if p.Target < 1 || p.Target > 99 {
		return nil, fmt.Errorf("target: %d must be between 1 and 99", p.Target)
	}
	go wait.UntilWithContext(ctx, p.refresh, 30*time.Second)
	return p, nil
}

// Name returns the plugin's name.
func (p *TargetLoad) Name() string { return Name }

// refresh reads the nodes' usage. If it fails, the last values are used.
func (p *TargetLoad) refresh(ctx context.Context) {
	text, err := p.handle.ClientSet().CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").DoRaw(ctx)
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Usage    struct{ CPU resource.Quantity }
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		p.handle.Logger(ctx).Error(err, "TargetLoad cannot read metrics")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used, p.placed = map[string]int64{}, map[string]int64{}
	for _, item := range list.Items {
		p.used[item.Metadata.Name] = item.Usage.CPU.MilliValue()
	}
}

// Score returns more the nearer the pod brings a node to the target, from 50 to 100 below it, and
// from 100 to 0 above it.
func (p *TargetLoad) Score(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used, measured := p.used[node.Node().Name]
	load := int64(100)
	if capacity := node.Allocatable().MilliCPU; measured && capacity > 0 {
		load = 100 * (used + p.placed[node.Node().Name] + cpu(pod)) / capacity
	}
	switch {
	case load <= p.Target:
		return 50 + 50*load/p.Target, nil
	case load < 100:
		return 100 * (100 - load) / (100 - p.Target), nil
	}
	return scheduler.MinNodeScore, nil
}

// Reserve counts the pod on its node until its load is measured.
func (p *TargetLoad) Reserve(_ context.Context, _ scheduler.State, pod *corev1.Pod, node string) *scheduler.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.placed[node] += cpu(pod)
	return nil
}

// Unreserve does nothing: the next measurement corrects the load.
func (p *TargetLoad) Unreserve(context.Context, scheduler.State, *corev1.Pod, string) {}

// Sign returns the CPU request, the only part of the pod that Score reads.
func (p *TargetLoad) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return cpu(pod), nil
}

// cpu returns the request of the first container.
func cpu(pod *corev1.Pod) int64 { return pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }
