// Package costaware is a portable plugin that prefers nodes where a pod costs little: the node's
// price times the share of the node that the pod requests.
package costaware

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "CostAware"

// Requests of a pod without any, as NodeResourcesFit assumes for scoring
// (pkg/scheduler/util/pod_resources.go).
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 << 20
)

// CostAware prefers cheap nodes.
type CostAware struct{ arguments *Arguments }

// New returns the plugin configured by its arguments.
func New(_ context.Context, args scheduler.Arguments, _ scheduler.Handle) (*CostAware, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	return &CostAware{arguments: a}, nil
}

// Rules returns no permissions: prices are in labels of nodes and in the arguments.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	_, err := decode(args)
	return nil, err
}

// Name returns the plugin's name.
func (c *CostAware) Name() string { return Name }

// request is the CPU and memory that a pod requests. It is exported as JSON in its signature.
type request struct{ MilliCPU, Memory int64 }

// Sign returns the CPU and memory that the pod requests.
func (c *CostAware) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return requestOf(pod), nil
}

// unpriced is the raw score of a node without a price. Nodes with a price score more than 0,
// because a pod always requests something.
const unpriced = 0

// precision is the number of raw score steps for a whole node with price 1.
const precision = 1e9

// Score returns the cost of the pod on the node, which NormalizeScore turns into a score.
func (c *CostAware) Score(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	price, ok := c.arguments.price(node.Node().Labels)
	if !ok {
		return unpriced, nil
	}
	return 1 + int64(math.Round(math.Min(precision*price*share(requestOf(pod), node.Allocatable()),
		math.MaxInt32*precision))), nil
}

// share returns the share of a node that a request takes: the mean for CPU and memory. It is more
// than 1 if the node is too small.
func share(r request, allocatable scheduler.Resources) float64 {
	if allocatable.MilliCPU <= 0 || allocatable.Memory <= 0 {
		return 1
	}
	return (float64(r.MilliCPU)/float64(allocatable.MilliCPU) + float64(r.Memory)/float64(allocatable.Memory)) / 2
}

// requestOf returns the CPU and memory that a pod requests, or the defaults.
func requestOf(pod *corev1.Pod) request {
	r := request{
		MilliCPU: scheduler.PodRequest(pod, corev1.ResourceCPU),
		Memory:   scheduler.PodRequest(pod, corev1.ResourceMemory),
	}
	if r.MilliCPU == 0 {
		r.MilliCPU = defaultMilliCPU
	}
	if r.Memory == 0 {
		r.Memory = defaultMemory
	}
	return r
}

// NormalizeScore gives the node where the pod costs least the highest score, and half of it to one
// where it costs twice as much. Nodes without a price get the other nodes' mean score, or nothing.
func (c *CostAware) NormalizeScore(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	least, priced := int64(math.MaxInt64), int64(0)
	for _, s := range scores {
		if s.Score != unpriced {
			priced++
			if s.Score < least {
				least = s.Score
			}
		}
	}
	sum := int64(0)
	var without []int
	for i, s := range scores {
		if s.Score == unpriced {
			without = append(without, i)
			continue
		}
		scores[i].Score = int64(math.Floor(float64(scheduler.MaxNodeScore) * float64(least) / float64(s.Score)))
		sum += scores[i].Score
	}
	rest := int64(0)
	if c.arguments.Unpriced == UnpricedNeutral && priced > 0 {
		rest = (sum + priced/2) / priced
	}
	for _, i := range without {
		scores[i].Score = rest
	}
	return nil
}
