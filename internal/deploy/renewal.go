package deploy

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// NodeFile is a node's kubeconfig, and the time when it was written.
type NodeFile struct {
	*inspect.NodeCredentials
	Written time.Time
}

// DescribeTokens describes, by the pods of a scheduler with credentials serviceaccount, how their
// tokens are renewed.
func DescribeTokens(pods []corev1.Pod, now time.Time) []string {
	var seen []string
	for i := range pods {
		pod := &pods[i]
		life, bound := tokenLife(pod)
		running := runningFor(pod, now)
		switch {
		case !bound:
			seen = append(seen, fmt.Sprintf("pod %s: the cluster mounts a token that does not expire", pod.Name))
		case running > life:
			seen = append(seen,
				fmt.Sprintf("pod %s: the kubelet requests a token for %s and has renewed it: the container has been running for %s",
					pod.Name, life, running))
		default:
			seen = append(seen, fmt.Sprintf("pod %s: the kubelet requests a token for %s and renews it before it expires",
				pod.Name, life))
		}
	}
	return seen
}

// defaultTokenLife is a token's lifetime if its volume does not say (pkg/apis/core/v1/defaults.go).
const defaultTokenLife = time.Hour

// tokenLife returns the lifetime of a pod's ServiceAccount token. It returns false if the token is
// not bound to the pod and does not expire.
func tokenLife(pod *corev1.Pod) (time.Duration, bool) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		at := slices.IndexFunc(volume.Projected.Sources,
			func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
		if at < 0 {
			continue
		}
		if seconds := volume.Projected.Sources[at].ServiceAccountToken.ExpirationSeconds; seconds != nil {
			return time.Duration(*seconds) * time.Second, true
		}
		return defaultTokenLife, true
	}
	return 0, false
}

// runningFor returns how long the scheduler's container has been running, or 0 if it is not
// running.
func runningFor(pod *corev1.Pod, now time.Time) time.Duration {
	if started := startOf(pod); !started.IsZero() {
		return now.Sub(started).Round(time.Second)
	}
	return 0
}

// startOf returns the scheduler container's start time. It is zero if the container is not running.
func startOf(pod *corev1.Pod) time.Time {
	if c := podstatus.StatusOf(pod, manifest.ContainerName); c != nil && c.State.Running != nil {
		return c.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// DescribeFile describes, by the pods of a scheduler with credentials hostpath, which state of the
// node's file they use. file is nil if this is not a control-plane node.
func DescribeFile(pods []corev1.Pod, file *NodeFile) []string {
	var seen []string
	if file != nil {
		seen = append(seen, fmt.Sprintf("%s of this node was written on %s; its certificate expires on %s",
			file.Path, file.Written.UTC().Format(time.RFC3339), file.Expires.UTC().Format(time.RFC3339)))
	}
	for i := range pods {
		if started := startOf(&pods[i]); !started.IsZero() {
			seen = append(seen, fmt.Sprintf("pod %s read the file of node %s when its container started, on %s", pods[i].Name,
				pods[i].Spec.NodeName, started.UTC().Format(time.RFC3339)))
		}
	}
	return seen
}
