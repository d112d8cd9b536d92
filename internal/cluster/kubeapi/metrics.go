package kubeapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// metricsTime bounds the request for one pod's metrics.
const metricsTime = 5 * time.Second

// Metrics reads the metrics from schedulers and extenders: directly on their own node, otherwise
// through the API server. A scheduler does not show its metrics to anonymous requests, and the API
// server forwards no credentials.
type Metrics struct {
	Pods corev1client.PodsGetter
	// Machine lists this machine's names and addresses. Local reads the metrics at one of its ports.
	// It is nil if that is impossible.
	Machine []string
	Local   func(ctx context.Context, port int) (string, error)
}

// Read returns a pod's metrics, in Prometheus' text format.
func (m Metrics) Read(ctx context.Context, pod *corev1.Pod, port int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTime)
	defer cancel()
	var local error
	if pod.Spec.HostNetwork && m.Local != nil &&
		(slices.Contains(m.Machine, pod.Status.HostIP) || slices.Contains(m.Machine, pod.Spec.NodeName)) {
		text, err := m.Local(ctx, port)
		if err == nil {
			return text, nil
		}
		local = err
	}
	text, err := m.Pods.Pods(pod.Namespace).ProxyGet("https", pod.Name, strconv.Itoa(port), "/metrics", nil).DoRaw(ctx)
	if err != nil && local != nil {
		err = fmt.Errorf("%w; on this node: %w", err, local)
	}
	return string(text), err
}
