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

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// annotationHash is the pod's UID as the kubelet made it of the file, unless the
// file names one (pkg/kubelet/types/pod_update.go).
const annotationHash = "kubernetes.io/config.hash"

const (
	lookEvery   = 300 * time.Millisecond
	lookTimeout = 3 * time.Second
	// APIPatience is how long an API server that is part of the same pod may be
	// away before the old manifest comes back unasked.
	APIPatience = 30 * time.Second
	// leaseName and its namespace are the default scheduler's
	// (pkg/scheduler/apis/config/types.go).
	leaseName = "kube-scheduler"
	// mirrorPause is how often a mirror pod that tells of an older manifest is
	// deleted, so that the kubelet makes it anew.
	mirrorPause = 10 * time.Second
)

// Watch looks at the pod that a kubelet runs from a manifest.
type Watch struct {
	Kube      kubernetes.Interface
	Namespace string
	// Pod is the name of the mirror pod, Container the scheduler's in it.
	Pod, Container string
	// HoldsAPI says that the API server is a container of the same pod.
	HoldsAPI bool
	// Elects says that the scheduler elects its leader with a lease.
	Elects bool
	// Hosts are the names by which the node may call itself in the lease; Alone
	// says that no other node runs a default scheduler.
	Hosts []string
	Alone bool
	Log   *zap.Logger
}

// Seen is what one look at the pod and the lease found.
type Seen struct {
	// Hash is the kubelet's name for the manifest; Replacement the annotation.
	Hash, Replacement string
	// Image, ContainerID, ImageID of the scheduler's container.
	Image, ContainerID, ImageID string
	Ready                       bool
	// Holder of the lease.
	Holder string

	pod   *corev1.Pod
	lease *coordinationv1.Lease
	// ended are containers that are known to have ended before.
	ended []string
}

// Look looks once.
func (w *Watch) Look(ctx context.Context) (*Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	pod, err := w.Kube.CoreV1().Pods(w.Namespace).Get(ctx, w.Pod, metav1.GetOptions{})
	if err != nil {
		return nil, kubeapi.Explain("read Pod/"+w.Namespace+"/"+w.Pod, err)
	}
	seen := &Seen{pod: pod, Hash: pod.Annotations[annotationHash], Replacement: pod.Annotations[AnnotationReplacement], Ready: kubeapi.PodReady(pod)}
	if status := statusOf(pod, w.Container); status != nil {
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

// Want is what the pod has to become.
type Want struct {
	// Before is the look from before the swap; nil if there was none.
	Before *Seen
	// Forward says that the new manifest was put in place: its failing is told at
	// once. On the way back everything is waited for.
	Forward bool
	// Replacement is the annotation of the wanted manifest; empty: it has none.
	Replacement string
	// Changed says that the manifest differs from the one before; Pinned that it has
	// the same UID nevertheless, which else is the hash of the file.
	Changed, Pinned bool
	// Uncertain says that it is not known which manifest the kubelet read last.
	Uncertain bool
	// Settle is how long all has to hold without a break.
	Settle time.Duration

	others []string
}

// Ran is what Wait saw.
type Ran struct {
	Seen
	// Leads says that the scheduler of this node holds the lease; else another
	// node's does.
	Leads bool
	// Without is how long no scheduler held the lease, by the schedulers' own
	// entries; it is at most 2 s too long, because they renew that often. Zero if
	// it could not be told.
	Without time.Duration
	// started is when the wanted container was first seen to run.
	started time.Time
}

// Others adds the IDs of containers that are not the one waited for.
func (w *Want) Others(ids ...string) { w.others = append(w.others, ids...) }

// NotRunningError says why the pod did not become what it has to be.
type NotRunningError struct {
	Pod, Reason string
	// Container is the ID of the container that was waited for, if it was seen.
	Container string
	// Log is the end of what the scheduler wrote.
	Log []string
}

// Error names the pod and the reason; the log follows, indented.
func (e *NotRunningError) Error() string {
	text := fmt.Sprintf("wait for Pod/%s: %s", e.Pod, e.Reason)
	if len(e.Log) > 0 {
		text += "\n  the end of the scheduler's log:\n    " + strings.Join(e.Log, "\n    ")
	}
	return text
}

// APIAwayError says that the API server, which is in the same pod, did not come back.
type APIAwayError struct{ Err error }

// Error says how long it was waited for.
func (e *APIAwayError) Error() string {
	return fmt.Sprintf("the API server did not answer for %s: %v", APIPatience, e.Err)
}

// Unwrap returns the last error of asking it.
func (e *APIAwayError) Unwrap() error { return e.Err }

// Wait waits until the kubelet runs the wanted manifest: all containers ready, and
// the lease held by a scheduler that was started since. It ends with ctx, with a
// [*NotRunningError] as soon as the new scheduler is known to fail, and with an
// [*APIAwayError].
func (w *Watch) Wait(ctx context.Context, want Want) (*Ran, error) {
	return newWait(w, want).until(ctx, func(*Ran) bool { return true })
}

// Stay watches what Wait saw until the container has run for steady.
func (w *Watch) Stay(ctx context.Context, want Want, ran *Ran, steady time.Duration) error {
	wait := newWait(w, want)
	wait.ran.started = ran.started
	wait.container = ran.ContainerID
	_, err := wait.until(ctx, func(r *Ran) bool { return time.Since(r.started) >= steady })
	return err
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func endedIDs(status *corev1.ContainerStatus) []string {
	var ids []string
	for _, state := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if state != nil && state.ContainerID != "" {
			ids = append(ids, state.ContainerID)
		}
	}
	return ids
}
