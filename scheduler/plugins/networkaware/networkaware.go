// Package networkaware is a portable plugin that scores nodes by a custom resource, for example one
// in which an agent on each node reports the latency that it measures.
//
// The plugin reads the resource through a dynamic informer. A node without an object, or with one
// that cannot be parsed, gets the other nodes' mean score. While the resource does not exist, the
// plugin skips scoring.
package networkaware

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/customresource"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "NetworkAware"

const stateKey = Name + "/scale"

// NetworkAware scores nodes by a custom resource.
type NetworkAware struct {
	logs     func(context.Context) scheduler.Logger
	settings *settings
	values   *values
	metrics  *metrics
}

// New returns the plugin configured by its arguments and watches the resource until ctx is done.
// The plugin is not an EventsPlugin: kube-scheduler would wait for the resource.
func New(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (*NetworkAware, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(h.Metrics(), s.name())
	if err != nil {
		return nil, fmt.Errorf("register metrics of %s: %w", Name, err)
	}
	n := &NetworkAware{logs: h.Logger, settings: s, values: newValues(s), metrics: m}
	return n, customresource.Watch(ctx, h, customresource.Options{
		Plugin: Name, Resource: s.resource, Namespace: s.Namespace, Missing: "scoring is skipped until it is created",
		Set: n.set, Delete: n.remove, Observe: m.observe,
	})
}

func (n *NetworkAware) set(object *unstructured.Unstructured) error {
	err := n.values.set(object)
	if err != nil {
		n.metrics.invalid.Inc()
	}
	n.metrics.nodes.Set(float64(n.values.count()))
	return err
}

func (n *NetworkAware) remove(namespace, name string) {
	n.values.remove(namespace, name)
	n.metrics.nodes.Set(float64(n.values.count()))
}

// Rules returns the permission to read the resource that the arguments name.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	s, err := decode(args)
	if err != nil {
		return nil, err
	}
	return []rbacv1.PolicyRule{customresource.Rule(s.resource)}, nil
}

// Name returns the plugin's name.
func (n *NetworkAware) Name() string { return Name }

// scale maps the values of one cycle's nodes to scores: the best value to MaxNodeScore, the worst
// to MinNodeScore. A node without a value gets the mean.
type scale struct {
	worst, best float64
	mean        int64
}

func (s *scale) score(value float64) int64 {
	// Halved, so that the difference between float64's extreme values is finite.
	span := s.best/2 - s.worst/2
	if span == 0 { // also if the values differ by less than a float64 can halve
		return scheduler.MaxNodeScore
	}
	share := (value/2 - s.worst/2) / span
	// A value may have changed since PreScore.
	return int64(math.Round(float64(scheduler.MaxNodeScore) * math.Min(1, math.Max(0, share))))
}

// PreScore finds the best and the worst value of the feasible nodes. It skips Score if no node has
// a value.
func (n *NetworkAware) PreScore(ctx context.Context, state scheduler.State, pod *corev1.Pod,
	nodes []scheduler.NodeInfo) *scheduler.Status {
	found := &scale{}
	known := 0
	for _, node := range nodes {
		value, ok := n.values.of(node.Node().Name)
		if !ok {
			continue
		}
		known++
		if known == 1 {
			found.worst, found.best = value, value
		}
		if n.better(value, found.best) {
			found.best = value
		}
		if n.better(found.worst, value) {
			found.worst = value
		}
	}
	n.metrics.unknown.Add(float64(len(nodes) - known))
	log := n.logs(ctx)
	if known == 0 {
		log.Info(5, "NetworkAware has no values of the nodes", "namespace", pod.Namespace, "pod", pod.Name, "resource",
			n.settings.name(), "nodes", len(nodes))
		return scheduler.Skip()
	}
	sum, counted := int64(0), int64(0)
	for _, node := range nodes {
		if value, ok := n.values.of(node.Node().Name); ok {
			sum += found.score(value)
			counted++
		}
	}
	if counted > 0 { // the objects may have been deleted meanwhile
		found.mean = (sum + counted/2) / counted
	}
	state.Write(stateKey, found)
	if log.Enabled(5) {
		log.Info(5, "NetworkAware scores nodes", "namespace", pod.Namespace, "pod", pod.Name, "resource", n.settings.name(),
			"best", found.best, "worst", found.worst, "nodes", len(nodes), "withValue", known)
	}
	return nil
}

func (n *NetworkAware) better(a, b float64) bool {
	if n.settings.Prefer == PreferHigher {
		return a > b
	}
	return a < b
}

// Score prefers the node with the better value.
func (n *NetworkAware) Score(ctx context.Context, state scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	written, _ := state.Read(stateKey)
	found, ok := written.(*scale)
	if !ok {
		return scheduler.MinNodeScore, nil
	}
	score := found.mean
	value, known := n.values.of(node.Node().Name)
	if known {
		score = found.score(value)
	}
	if log := n.logs(ctx); log.Enabled(10) {
		log.Info(10, "NetworkAware scored a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name,
			"known", known, "value", value, "score", score)
	}
	return score, nil
}

// Sign declares that the results do not depend on the pod: they depend on the objects of the custom
// resource only.
func (n *NetworkAware) Sign(context.Context, *corev1.Pod) (interface{}, *scheduler.Status) {
	return nil, nil
}
