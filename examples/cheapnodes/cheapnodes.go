// Package cheapnodes is an example: it prefers nodes with a low price, which is in a label of the
// node.
package cheapnodes

import (
	"context"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "CheapNodes"

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Label is the node label with the price, such as "0.27": "example.com/price" by default.
	Label string `json:"label,omitempty"`
	// Unknown is the price for nodes without a valid one, 1 by default.
	Unknown float64 `json:"unknown,omitempty"`
}

// CheapNodes scores nodes by price.
type CheapNodes struct{ arguments Arguments }

// New returns the plugin configured by its arguments.
func New(_ context.Context, args scheduler.Arguments, _ scheduler.Handle) (*CheapNodes, error) {
	a := Arguments{Label: "example.com/price", Unknown: 1}
	if err := args.Decode(&a); err != nil {
		return nil, err
	}
	return &CheapNodes{arguments: a}, nil
}

// Name returns the plugin's name.
func (c *CheapNodes) Name() string { return Name }

// Score returns the price in thousandths. NormalizeScore turns it into a score.
func (c *CheapNodes) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	price, err := strconv.ParseFloat(node.Node().Labels[c.arguments.Label], 64)
	if err != nil || !(price >= 0 && price < 1e9) { // nor NaN
		price = c.arguments.Unknown
	}
	return int64(math.Round(1000 * price)), nil
}

// NormalizeScore gives the cheapest nodes the highest score, and nodes that are twice as expensive
// half of it.
func (c *CheapNodes) NormalizeScore(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	cheapest := int64(math.MaxInt64)
	for _, s := range scores {
		if s.Score < cheapest {
			cheapest = s.Score
		}
	}
	for i, s := range scores {
		scores[i].Score = scheduler.MaxNodeScore
		if s.Score > cheapest {
			scores[i].Score = scheduler.MaxNodeScore * cheapest / s.Score
		}
	}
	return nil
}

// Sign returns nothing of the pod, because the scores do not depend on it: 1.35 and later batch
// like pods.
func (c *CheapNodes) Sign(context.Context, *corev1.Pod) (interface{}, *scheduler.Status) {
	return nil, nil
}
