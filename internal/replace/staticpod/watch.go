package staticpod

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// annotationHash is the pod's UID: the kubelet's hash of the file, unless the file sets a UID
// (pkg/kubelet/types/pod_update.go).
const annotationHash = "kubernetes.io/config.hash"

const (
	lookEvery   = 300 * time.Millisecond
	lookTimeout = 3 * time.Second
	// APIPatience is the time that an API server in the same pod may be unavailable before the old
	// manifest is restored automatically.
	APIPatience = 30 * time.Second
	// leaseName is the default scheduler's lease (pkg/scheduler/apis/config/types.go).
	leaseName = "kube-scheduler"
	// mirrorPause is the interval for deleting an outdated mirror pod, which the kubelet then
	// recreates.
	mirrorPause = 10 * time.Second
)

// Watch observes the pod that a kubelet runs from a manifest.
type Watch struct {
	Kube      kubernetes.Interface
	Namespace string
	// Pod is the mirror pod's name, Container the scheduler container's name.
	Pod, Container string
	// HoldsAPI is set if the API server is a container in the same pod.
	HoldsAPI bool
	// Elects is set if the scheduler uses leader election.
	Elects bool
	// Alone is set if no other node runs a default scheduler.
	Alone bool
	Log   *zap.Logger
}

// Seen is an observation of the pod and the lease.
type Seen struct {
	// Hash is the kubelet's hash of the manifest, Replacement the annotation.
	Hash, Replacement string
	// Image, ContainerID and ImageID describe the scheduler's container.
	Image, ContainerID, ImageID string
	Ready                       bool
	// Holder is the lease's holder.
	Holder string

	pod   *corev1.Pod
	lease *coordinationv1.Lease
	// ended are the IDs of containers that ended before.
	ended []string
}

// renewed returns when the lease was last renewed, by its holder's clock, or zero if that is
// unknown.
func (s *Seen) renewed() time.Time {
	if s.lease == nil || s.lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return s.lease.Spec.RenewTime.Time
}

// Observe reads the pod and the lease once.
func (w *Watch) Observe(ctx context.Context) (*Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	pod, err := w.Kube.CoreV1().Pods(w.Namespace).Get(ctx, w.Pod, metav1.GetOptions{})
	if err != nil {
		return nil, kubeapi.Explain("read Pod/"+w.Namespace+"/"+w.Pod, err)
	}
	seen := &Seen{pod: pod, Hash: pod.Annotations[annotationHash], Replacement: pod.Annotations[AnnotationReplacement],
		Ready: podstatus.Ready(pod)}
	if status := podstatus.StatusOf(pod, w.Container); status != nil {
		seen.ContainerID, seen.Image, seen.ImageID = status.ContainerID, status.Image, status.ImageID
		seen.ended = endedIDs(status)
	}
	if !w.Elects {
		return seen, nil
	}
	seen.lease, err = w.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, kubeapi.Explain("read the lease "+leaseName, err)
	}
	if err == nil && seen.lease.Spec.HolderIdentity != nil {
		seen.Holder = *seen.lease.Spec.HolderIdentity
	}
	return seen, nil
}

// Want is the pod's expected state.
type Want struct {
	// Before is the observation before the swap. It is nil if there was none.
	Before *Seen
	// Forward is set if the new manifest was swapped in: a failure ends the wait at once. When the
	// old manifest is restored, the wait continues.
	Forward bool
	// Replacement is the expected manifest's annotation. It is empty if the manifest has none.
	Replacement string
	// Changed is set if the manifest differs from the previous one. Pinned is set if it nevertheless
	// has the same UID; otherwise the UID is the file's hash.
	Changed, Pinned bool
	// Uncertain is set if it is unknown which manifest the kubelet read last.
	Uncertain bool
	// Settle is the time that all conditions must hold without a break.
	Settle time.Duration

	others []string
}

// Ran is the result of Wait.
type Ran struct {
	Seen
	// Leads is set if this node's scheduler, not another node's, holds the lease.
	Leads bool
	// Without is the time during which no scheduler held the lease, according to its renew and acquire
	// times. It is at most 2 s too long, the renew interval. It is zero if unknown.
	Without time.Duration
	// started is the time at which the expected container was first seen running.
	started time.Time
}

// Others adds the IDs of containers that are not the expected one.
func (w *Want) Others(ids ...string) { w.others = append(w.others, ids...) }

// NotRunningError is returned when the pod does not reach the expected state.
type NotRunningError struct {
	Pod, Reason string
	// Container is the expected container's ID, if it was seen.
	Container string
	// Log is the end of the scheduler's log.
	Log []string
}

// Error returns the pod and the reason, followed by the indented log.
func (e *NotRunningError) Error() string {
	text := fmt.Sprintf("wait for Pod/%s: %s", e.Pod, e.Reason)
	if len(e.Log) > 0 {
		text += "\n  the end of the scheduler's log:\n    " + strings.Join(e.Log, "\n    ")
	}
	return text
}

// APIAwayError is returned when the API server in the same pod does not become available again.
type APIAwayError struct{ Err error }

// Error returns the duration and the last error.
func (e *APIAwayError) Error() string {
	return fmt.Sprintf("the API server did not answer for %s: %v", APIPatience, e.Err)
}

// Unwrap returns the API server's last error.
func (e *APIAwayError) Unwrap() error { return e.Err }

// Wait waits until the kubelet runs the expected manifest: all containers are ready, and a
// scheduler that started since holds the lease. It returns when ctx ends, with a [*NotRunningError]
// as soon as the new scheduler has failed, or with an [*APIAwayError].
func (w *Watch) Wait(ctx context.Context, want Want) (*Ran, error) {
	ran, err := newWait(w, want).until(ctx, func(*Ran) bool { return true })
	if err == nil {
		ran.Leads = w.leads(ctx, ran)
	}
	return ran, err
}

func (w *Watch) log() *zap.Logger {
	if w.Log == nil {
		return zap.NewNop()
	}
	return w.Log
}

// Stay observes the result of Wait until the container has run for the duration stable.
func (w *Watch) Stay(ctx context.Context, want Want, ran *Ran, stable time.Duration) error {
	wait := newWait(w, want)
	wait.ran.started = ran.started
	wait.container, wait.between = ran.ContainerID, true // its container is known
	_, err := wait.until(ctx, func(r *Ran) bool { return time.Since(r.started) >= stable })
	return err
}

// leads reports whether this node's scheduler holds the lease. Other nodes may have the same host
// name, so that its log shows it.
func (w *Watch) leads(ctx context.Context, ran *Ran) bool {
	if !w.Elects || w.Alone {
		return w.Elects
	}
	found, err := kubeapi.AcquiredLease(ctx, w.Kube, ran.pod, w.Container)
	if err != nil {
		w.log().Warn("whether the scheduler of this node leads is unknown", zap.Error(err))
	}
	return found
}

func endedIDs(status *corev1.ContainerStatus) []string {
	var ids []string
	for _, state := range []*corev1.ContainerStateTerminated{status.State.Terminated,
		status.LastTerminationState.Terminated} {
		if state != nil && state.ContainerID != "" {
			ids = append(ids, state.ContainerID)
		}
	}
	return ids
}
