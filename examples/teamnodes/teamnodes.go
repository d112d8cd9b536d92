// Package teamnodes is an example: it keeps a team's pods on that team's nodes, and all other pods
// off these nodes.
package teamnodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "TeamNodes"

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Label is the label with the team, on pods and nodes: "example.com/team" by default.
	Label string `json:"label,omitempty"`
}

// TeamNodes filters nodes by team.
type TeamNodes struct {
	label string
	other *scheduler.Status
}

// New returns the plugin configured by its arguments.
func New(_ context.Context, args scheduler.Arguments, _ scheduler.Handle) (*TeamNodes, error) {
	a := Arguments{Label: "example.com/team"}
	if err := args.Decode(&a); err != nil {
		return nil, err
	}
	if a.Label == "" {
		return nil, fmt.Errorf("label: is required")
	}
	// Preemption cannot help: it is the wrong node regardless of the pods on it.
	return &TeamNodes{label: a.Label, other: scheduler.Unresolvable("node is of another team")}, nil
}

// Name returns the plugin's name.
func (t *TeamNodes) Name() string { return Name }

// Filter rejects another team's nodes. A pod or a node without the label belongs to no team.
func (t *TeamNodes) Filter(_ context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if pod.Labels[t.label] != node.Node().Labels[t.label] {
		return t.other
	}
	return nil
}

// EventsToRegister returns the events after which a rejected pod may find a node. A change of the
// pod's labels always retries it.
func (t *TeamNodes) EventsToRegister() []scheduler.ClusterEvent {
	return []scheduler.ClusterEvent{{Resource: scheduler.EventNode,
		Action: scheduler.ActionAdd | scheduler.ActionUpdateNodeLabel}}
}

// Sign returns the label that Filter reads, so that 1.35 and later batch a team's pods.
func (t *TeamNodes) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return pod.Labels[t.label], nil
}
