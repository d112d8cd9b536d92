package staticpod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// wait is the state of one Wait or Stay.
type wait struct {
	*Watch
	want Want
	ran  Ran
	// container is the expected container's ID as soon as it was seen.
	container string
	// renewed is when the lease had last been renewed when that container was first seen.
	renewed time.Time
	// former are the IDs of containers that are not the expected one, and between is set if one of
	// them is from a manifest that the kubelet had not read when this run began: see mayBeFormer.
	former  []string
	between bool
	away    time.Time
	mirror  time.Time
	// holds is the time since when all conditions hold.
	holds    time.Time
	election election
	reason   string
}

func newWait(w *Watch, want Want) *wait {
	t := &wait{Watch: w, want: want, reason: "the pod was not seen yet", former: slices.Clone(want.others)}
	if want.Before != nil {
		t.former = append(t.former, want.Before.ended...)
		if want.Changed {
			t.former = append(t.former, want.Before.ContainerID)
		}
		t.election.begin(want.Before)
	}
	return t
}

func (t *wait) until(ctx context.Context, enough func(*Ran) bool) (*Ran, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		seen, err := t.Observe(ctx)
		if ctx.Err() == nil {
			if err = t.check(ctx, seen, err); err != nil {
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
			return nil, t.notRunning(context.WithoutCancel(ctx), "gave up: "+t.reason)
		case <-ticker.C:
		}
	}
}

// check sets reason to the first condition that does not hold. It returns an error if the pod
// cannot become ready.
func (t *wait) check(ctx context.Context, seen *Seen, err error) error {
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
	t.election.observe(seen)
	status := podstatus.StatusOf(seen.pod, t.Container)
	if status == nil {
		t.reason = "the kubelet has not reported container " + t.Container
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

// outOfTime reports whether an error only means that the time was up.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "would exceed context deadline")
}

// failed describes a new container that ended or cannot start.
func (t *wait) failed(seen *Seen, status *corev1.ContainerStatus) string {
	for _, state := range []*corev1.ContainerStateTerminated{status.State.Terminated,
		status.LastTerminationState.Terminated} {
		if state == nil || state.ContainerID == "" || slices.Contains(t.former, state.ContainerID) {
			continue
		}
		if !t.want.Forward || t.podRestarts(seen) || t.mayBeFormer(state) {
			t.former = append(t.former, state.ContainerID)
			continue
		}
		return fmt.Sprintf("container %s ended with exit status %d (%s) %s", t.Container, state.ExitCode, state.Reason,
			strings.TrimSpace(state.Message))
	}
	if w := status.State.Waiting; w != nil && t.want.Forward && podstatus.Classify(w.Reason).Preventing() &&
		!t.podRestarts(seen) {
		return fmt.Sprintf("container %s: %s: %s", t.Container, w.Reason, w.Message)
	}
	return ""
}

// mayBeFormer reports whether a container that ended may be from another manifest, and was stopped
// for this one. If not, its successor fails too. It is the one from before the swap if the kubelet
// had this manifest already. One more may be from a manifest that another program wrote just
// before: the kubelet starts its container, and then stops it for this one.
func (t *wait) mayBeFormer(state *corev1.ContainerStateTerminated) bool {
	if t.want.Uncertain &&
		(state.ExitCode == 0 || t.want.Before != nil && state.ContainerID == t.want.Before.ContainerID) {
		return true
	}
	if t.between || !wasStopped(state) {
		return false
	}
	t.between = true
	return true
}

// wasStopped reports whether a container may have ended because it was told to. A Go program that
// is told so before it handles signals exits with status 2, since the kernel ignores a signal's
// default action for the first process in a container (dieFromSignal in runtime/signal_unix.go).
func wasStopped(state *corev1.ContainerStateTerminated) bool {
	const sigterm, sigkill, beforeHandlers = 128 + 15, 128 + 9, 2
	switch state.ExitCode {
	case 0, sigterm, beforeHandlers:
		return true
	case sigkill:
		return state.Reason != "OOMKilled"
	}
	return false
}

// podRestarts reports whether the API server restarts with the pod. Until it serves, a scheduler
// may exit and restart.
func (t *wait) podRestarts(seen *Seen) bool {
	if !t.HoldsAPI || t.want.Before == nil {
		return false
	}
	for _, before := range t.want.Before.pod.Status.ContainerStatuses {
		now := podstatus.StatusOf(seen.pod, before.Name)
		if before.Name != t.Container && (now == nil || now.ContainerID != before.ContainerID) {
			return true
		}
	}
	return false
}

// missing returns the first condition that does not hold, or "" if all conditions hold.
func (t *wait) missing(ctx context.Context, seen *Seen, status *corev1.ContainerStatus) string {
	id := status.ContainerID
	switch {
	case id == "" || status.State.Running == nil:
		t.container = ""
		return "container " + t.Container + " is not running" + waitingReason(status)
	case slices.Contains(t.former, id):
		return "the kubelet has not restarted the scheduler"
	}
	if t.container != id {
		t.container, t.ran.started, t.renewed = id, time.Now(), seen.renewed()
	}
	switch {
	case seen.Replacement != t.want.Replacement:
		t.renewMirror(ctx, seen)
		return "the API still shows the previous manifest"
	case t.want.Changed && !t.want.Pinned && t.want.Before != nil && seen.Hash == t.want.Before.Hash:
		return "the hash of the manifest has not changed"
	case !seen.Ready:
		return "not all containers are ready" + waitingReason(status)
	case t.Elects:
		return t.leader(seen)
	}
	return ""
}

// leader returns the first leader election condition that does not hold. The previous scheduler has
// ended when the new one runs. If its lease is renewed afterwards, the holder is another node's
// scheduler, also if the machines have the same host name.
func (t *wait) leader(seen *Seen) string {
	switch {
	case seen.Holder == "" || time.Since(seen.renewed()) >= time.Minute:
		return "no scheduler holds the lease " + leaseName
	case t.want.Changed && t.want.Before != nil && seen.Holder == t.want.Before.Holder && seen.renewed().Equal(t.renewed):
		return "the lease " + leaseName + " is still held by the previous scheduler"
	case !t.Alone && seen.lease.Spec.AcquireTime != nil && seen.renewed().Equal(seen.lease.Spec.AcquireTime.Time):
		return "the holder of the lease " + leaseName + " has just acquired it" // its log may not show it yet
	}
	return ""
}

// renewMirror deletes a mirror pod from an older manifest. If the pod UID is pinned, the kubelet
// considers that mirror pod up to date; after the deletion it creates a new one.
func (t *wait) renewMirror(ctx context.Context, seen *Seen) {
	if seen.pod.DeletionTimestamp == nil && time.Since(t.ran.started) > time.Second && time.Since(t.mirror) > mirrorPause {
		t.mirror = time.Now()
		now, uid := int64(0), seen.pod.UID
		err := t.Kube.CoreV1().Pods(t.Namespace).Delete(ctx, t.Pod,
			metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		t.log().Debug("deleted the mirror pod of the previous manifest", zap.String("pod", t.Pod), zap.Error(err))
	}
}

// notRunning returns an error with the end of the scheduler's log.
func (t *wait) notRunning(ctx context.Context, reason string) error {
	e := &NotRunningError{Pod: t.Namespace + "/" + t.Pod, Reason: reason, Container: t.container}
	if !t.want.Forward {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lines := int64(10)
	for _, previous := range []bool{false, true} {
		text, err := t.Kube.CoreV1().Pods(t.Namespace).GetLogs(t.Pod,
			&corev1.PodLogOptions{Container: t.Container, TailLines: &lines, Previous: previous}).DoRaw(ctx)
		if err == nil && len(strings.TrimSpace(string(text))) > 0 {
			e.Log = strings.Split(strings.TrimSpace(string(text)), "\n")
			break
		}
	}
	return e
}

func waitingReason(status *corev1.ContainerStatus) string {
	if w := status.State.Waiting; w != nil && w.Reason != "" {
		return strings.TrimSuffix(fmt.Sprintf(": %s: %s", w.Reason, w.Message), ": ")
	}
	return ""
}
