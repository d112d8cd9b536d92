// Package blockall is a portable plugin that rejects every node, so that pods stay pending. Use it
// for tests, for drains, and as a minimal example of a plugin.
package blockall

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "BlockAll"

const (
	defaultMessage = "every node is blocked by " + Name
	maxMessage     = 256
)

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// Namespaces are the namespaces whose pods are blocked. Empty means all namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	// Message is the reason in the pod's event and condition, at most 256 bytes.
	Message string `json:"message,omitempty"`
}

// BlockAll rejects every node.
type BlockAll struct {
	logs       func(context.Context) scheduler.Logger
	namespaces map[string]bool
	blocked    *scheduler.Status
	filtered   prometheus.Counter
}

// New returns the plugin configured by its arguments.
func New(_ context.Context, args scheduler.Arguments, h scheduler.Handle) (*BlockAll, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	metrics := scheduler.NewMetrics(h.Metrics(), "pmk_sched_blockall_")
	filtered := metrics.Counter("nodes_filtered_total",
		"Nodes that BlockAll filtered out, summed over the pods' attempts.")
	if metrics.Err() != nil {
		return nil, metrics.Err()
	}
	// Preemption cannot help, so it must not try.
	b := &BlockAll{logs: h.Logger, blocked: scheduler.Unresolvable(a.Message), filtered: filtered.WithLabelValues()}
	if len(a.Namespaces) > 0 {
		b.namespaces = make(map[string]bool, len(a.Namespaces))
		for _, namespace := range a.Namespaces {
			b.namespaces[namespace] = true
		}
	}
	return b, nil
}

// Rules checks the arguments and returns no rules: the plugin reads nothing.
func Rules(args scheduler.Arguments) ([]rbacv1.PolicyRule, error) {
	_, err := decode(args)
	return nil, err
}

func decode(args scheduler.Arguments) (Arguments, error) {
	a := Arguments{Message: defaultMessage}
	if err := args.Decode(&a); err != nil {
		return a, err
	}
	for i, namespace := range a.Namespaces {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return a, fmt.Errorf("namespaces[%d]: %q is not a namespace name: %s", i, namespace, strings.Join(wrong, "; "))
		}
	}
	if strings.TrimSpace(a.Message) == "" {
		return a, fmt.Errorf("message: must not be empty; omit it to use %q", defaultMessage)
	}
	if len(a.Message) > maxMessage {
		return a, fmt.Errorf("message: has %d bytes, more than %d", len(a.Message), maxMessage)
	}
	return a, nil
}

// Name returns the plugin's name.
func (b *BlockAll) Name() string { return Name }

// Filter rejects the node if the pod's namespace is blocked.
func (b *BlockAll) Filter(ctx context.Context, _ scheduler.State, pod *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if !b.blocks(pod) {
		return nil
	}
	b.filtered.Inc()
	if log := b.logs(ctx); log.Enabled(5) {
		log.Info(5, "BlockAll rejected a node", "namespace", pod.Namespace, "pod", pod.Name, "node", node.Node().Name)
	}
	return b.blocked
}

func (b *BlockAll) blocks(pod *corev1.Pod) bool {
	return b.namespaces == nil || b.namespaces[pod.Namespace]
}

// Sign returns whether the pod is blocked.
func (b *BlockAll) Sign(_ context.Context, pod *corev1.Pod) (interface{}, *scheduler.Status) {
	return b.blocks(pod), nil
}
