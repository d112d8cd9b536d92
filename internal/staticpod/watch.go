package staticpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	seen := &Seen{pod: pod, Hash: pod.Annotations[annotationHash], Replacement: pod.Annotations[AnnotationReplacement], Ready: podReady(pod)}
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

// wait is one waiting.
type wait struct {
	*Watch
	want Want
	ran  Ran
	// container is the ID of the wanted container once it was seen.
	container string
	known     []string
	away      time.Time
	mirror    time.Time
	// holds is since when nothing is missing.
	holds    time.Time
	election election
	reason   string
}

func newWait(w *Watch, want Want) *wait {
	t := &wait{Watch: w, want: want, reason: "nothing was seen of it", known: slices.Clone(want.others)}
	if want.Before != nil {
		t.known = append(t.known, want.Before.ended...)
		if want.Changed {
			t.known = append(t.known, want.Before.ContainerID)
		}
		t.election.begin(want.Before)
	}
	return t
}

func (t *wait) until(ctx context.Context, enough func(*Ran) bool) (*Ran, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		seen, err := t.Look(ctx)
		if ctx.Err() == nil {
			if err = t.judge(ctx, seen, err); err != nil {
				return nil, err
			}
		}
		switch {
		case ctx.Err() != nil || t.reason != "":
			t.holds = time.Time{}
		case t.holds.IsZero():
			t.holds = time.Now()
		}
		if !t.holds.IsZero() && time.Since(t.holds) >= t.want.Settle && enough(&t.ran) {
			return &t.ran, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, t.notRunning(context.WithoutCancel(ctx), "given up: "+t.reason)
		case <-ticker.C:
		}
	}
}

// judge sets reason to what is missing, and fails when it is known that nothing
// will come of it.
func (t *wait) judge(ctx context.Context, seen *Seen, err error) error {
	if err != nil {
		if t.reason == "" || !outOfTime(err) {
			t.reason = err.Error()
		}
		if apierrors.IsNotFound(err) {
			t.away = time.Time{}
			return nil
		}
		if t.away.IsZero() {
			t.away = time.Now()
		}
		if t.HoldsAPI && t.want.Forward && time.Since(t.away) > APIPatience {
			return &APIAwayError{Err: err}
		}
		return nil
	}
	t.away = time.Time{}
	t.election.look(seen)
	status := statusOf(seen.pod, t.Container)
	if status == nil {
		t.reason = "the kubelet has not told of container " + t.Container
		return nil
	}
	if why := t.failed(seen, status); why != "" {
		return t.notRunning(ctx, why)
	}
	t.reason = t.missing(ctx, seen, status)
	if t.reason == "" {
		t.ran.Seen, t.ran.Without = *seen, t.election.without()
	}
	return nil
}

// outOfTime recognises errors that tell nothing but that time was over.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "would exceed context deadline")
}

// failed tells of a new container that ended, or that cannot be started.
func (t *wait) failed(seen *Seen, status *corev1.ContainerStatus) string {
	for _, state := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if state == nil || state.ContainerID == "" || slices.Contains(t.known, state.ContainerID) {
			continue
		}
		told := t.want.Uncertain && state.ExitCode == 0 // it was told to end: it may be a former one
		if !t.want.Forward || told || t.podRestarts(seen) {
			t.known = append(t.known, state.ContainerID) // its API server was not there yet
			continue
		}
		return fmt.Sprintf("container %s ended with exit status %d (%s) %s", t.Container, state.ExitCode, state.Reason, strings.TrimSpace(state.Message))
	}
	hopeless := []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
	if w := status.State.Waiting; w != nil && t.want.Forward && slices.Contains(hopeless, w.Reason) && !t.podRestarts(seen) {
		return fmt.Sprintf("container %s: %s: %s", t.Container, w.Reason, w.Message)
	}
	return ""
}

// podRestarts says that the API server was restarted with the pod: until it serves,
// a scheduler may end and be started again.
func (t *wait) podRestarts(seen *Seen) bool {
	if !t.HoldsAPI || t.want.Before == nil {
		return false
	}
	for _, before := range t.want.Before.pod.Status.ContainerStatuses {
		now := statusOf(seen.pod, before.Name)
		if before.Name != t.Container && (now == nil || now.ContainerID != before.ContainerID) {
			return true
		}
	}
	return false
}

// missing tells what the pod still lacks; empty: nothing.
func (t *wait) missing(ctx context.Context, seen *Seen, status *corev1.ContainerStatus) string {
	id := status.ContainerID
	switch {
	case id == "" || status.State.Running == nil:
		t.container = ""
		return "container " + t.Container + " does not run" + waitingReason(status)
	case slices.Contains(t.known, id):
		return "the kubelet has not started the scheduler anew"
	}
	if t.container != id {
		t.container, t.ran.started = id, time.Now()
	}
	switch {
	case seen.Replacement != t.want.Replacement:
		t.renewMirror(ctx, seen)
		return "the API shows the former manifest"
	case t.want.Changed && !t.want.Pinned && t.want.Before != nil && seen.Hash == t.want.Before.Hash:
		return "the hash of the manifest has not changed"
	case !seen.Ready:
		return "not all containers are ready" + waitingReason(status)
	case t.Elects:
		return t.leader(seen)
	}
	return ""
}

// leader tells what is missing of a leader.
func (t *wait) leader(seen *Seen) string {
	t.ran.Leads = false
	host, _, _ := strings.Cut(seen.Holder, "_")
	fresh := seen.lease != nil && seen.lease.Spec.RenewTime != nil && time.Since(seen.lease.Spec.RenewTime.Time) < time.Minute
	switch {
	case seen.Holder == "" || !fresh:
		return "no scheduler holds the lease " + leaseName
	case t.want.Changed && t.want.Before != nil && seen.Holder == t.want.Before.Holder && (t.Alone || slices.Contains(t.Hosts, host)):
		return "the lease " + leaseName + " is still the former scheduler's"
	case t.Alone || slices.Contains(t.Hosts, host):
		t.ran.Leads = true
	}
	return ""
}

// renewMirror deletes a mirror pod that tells of an older manifest. Where the pod's
// UID is pinned the kubelet takes it for up to date; it makes a new one.
func (t *wait) renewMirror(ctx context.Context, seen *Seen) {
	if seen.pod.DeletionTimestamp == nil && time.Since(t.ran.started) > time.Second && time.Since(t.mirror) > mirrorPause {
		t.mirror = time.Now()
		now, uid := int64(0), seen.pod.UID
		err := t.Kube.CoreV1().Pods(t.Namespace).Delete(ctx, t.Pod, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		t.log().Debug("deleted the mirror pod of the former manifest", zap.String("pod", t.Pod), zap.Error(err))
	}
}

func (t *wait) log() *zap.Logger {
	if t.Log == nil {
		return zap.NewNop()
	}
	return t.Log
}

// notRunning collects the end of the scheduler's log.
func (t *wait) notRunning(ctx context.Context, reason string) error {
	e := &NotRunningError{Pod: t.Namespace + "/" + t.Pod, Reason: reason, Container: t.container}
	if !t.want.Forward {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lines := int64(10)
	for _, previous := range []bool{false, true} {
		text, err := t.Kube.CoreV1().Pods(t.Namespace).GetLogs(t.Pod, &corev1.PodLogOptions{Container: t.Container, TailLines: &lines, Previous: previous}).DoRaw(ctx)
		if err == nil && len(strings.TrimSpace(string(text))) > 0 {
			e.Log = strings.Split(strings.TrimSpace(string(text)), "\n")
			break
		}
	}
	return e
}

// election follows the lease from one holder to the next.
type election struct {
	former         string
	lastFormer     time.Time
	acquired       time.Time
	successor      string
	stoppedBetween bool
}

func (e *election) begin(before *Seen) {
	e.former = before.Holder
	e.look(before)
}

func (e *election) look(seen *Seen) {
	if seen.lease == nil || e.successor != "" {
		return
	}
	spec := seen.lease.Spec
	switch {
	case seen.Holder == e.former || seen.Holder == "":
		// A scheduler that ends releases the lease, and notes when.
		if spec.RenewTime != nil && !e.stoppedBetween {
			e.lastFormer = spec.RenewTime.Time
		}
		e.stoppedBetween = e.stoppedBetween || seen.Holder == ""
	default:
		e.successor = seen.Holder
		if spec.AcquireTime != nil {
			e.acquired = spec.AcquireTime.Time
		}
	}
}

func (e *election) without() time.Duration {
	if e.successor == "" || e.lastFormer.IsZero() || e.acquired.Before(e.lastFormer) {
		return 0
	}
	return e.acquired.Sub(e.lastFormer)
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

func waitingReason(status *corev1.ContainerStatus) string {
	if w := status.State.Waiting; w != nil && w.Reason != "" {
		return strings.TrimSuffix(fmt.Sprintf(": %s: %s", w.Reason, w.Message), ": ")
	}
	return ""
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
