package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// stalled is an error that needs the user, with the reason for the condition Stalled.
type stalled struct {
	reason string
	err    error
	// next is when the change is tried again. Zero: the rate limiter decides.
	next time.Time
}

func (e *stalled) Error() string { return e.err.Error() }
func (e *stalled) Unwrap() error { return e.err }

// maxMessage bounds a condition's message, which the API server limits to 32768 bytes.
const maxMessage = 2048

// describe returns an error's message with its hints. It is one line: kubectl prints it in a
// column.
func describe(err error) string {
	text := strings.Join(append([]string{err.Error()}, problem.Hints(err)...), "; ")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

func (u *run) set(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&u.object.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: u.object.Generation,
	})
}

// is reports whether a condition is true.
func (u *run) is(condition string) bool {
	return meta.IsStatusConditionTrue(u.object.Status.Conditions, condition)
}

// progress sets the conditions for a change in progress. Ready stays as it is: the former scheduler
// runs until the new one is ready.
func (u *run) progress(reason, message string) {
	u.set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason, message)
	u.set(v1alpha1.ConditionStalled, metav1.ConditionFalse, reason, message)
	if meta.FindStatusCondition(u.object.Status.Conditions, v1alpha1.ConditionReady) == nil {
		u.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	}
}

// describeChoice sets the conditions for the release.
func (u *run) describeChoice(c *choice) {
	s := u.servers
	switch {
	case c.missing != nil:
		message := c.missing.Error()
		if deployed := u.object.Status.Release; deployed != nil {
			message += fmt.Sprintf("; the scheduler of %s stays", deployed.Scheduler)
		}
		u.set(v1alpha1.ConditionReleaseMatched, metav1.ConditionFalse, "NoImageForRelease",
			message+"; "+c.missing.Hint())
	case c.waiting != nil:
		u.set(v1alpha1.ConditionReleaseMatched, metav1.ConditionFalse, "UpgradePolicyManual",
			fmt.Sprintf("the API server is %s; set spec.upgradePolicy to Automatic to upgrade", s.Oldest))
	case s.mixed():
		u.set(v1alpha1.ConditionReleaseMatched, metav1.ConditionTrue, "ServersMixed",
			fmt.Sprintf("API servers of %s and %s run: the scheduler has the older release", s.Oldest, s.Newest))
	default:
		u.set(v1alpha1.ConditionReleaseMatched, metav1.ConditionTrue, "Matched", "the API server is "+s.Oldest)
	}
	if c.waiting != nil {
		u.set(v1alpha1.ConditionUpgradeAvailable, metav1.ConditionTrue, "UpgradePolicyManual",
			fmt.Sprintf("%s, image %s", c.waiting.Release, c.waiting.Image))
		return
	}
	u.set(v1alpha1.ConditionUpgradeAvailable, metav1.ConditionFalse, "UpToDate", "there is no other image for the release")
}

// describeDeployed sets the conditions for a deployment that succeeded.
func (u *run) describeDeployed(proof *verify.Result) {
	u.set(v1alpha1.ConditionVerified, metav1.ConditionTrue, "PodBound",
		fmt.Sprintf("a pod was bound to node %s after %.3f s", proof.Node, proof.Seconds))
	u.set(v1alpha1.ConditionCredentialsValid, metav1.ConditionTrue, "ServiceAccountToken",
		"the scheduler has bound a pod with the token of its ServiceAccount, which the kubelet renews")
	reason, message := "Unchanged", "the objects are as deployed"
	if u.is(v1alpha1.ConditionDrifted) {
		reason, message = "Repaired", "the deployed state is restored"
	}
	u.set(v1alpha1.ConditionDrifted, metav1.ConditionFalse, reason, message)
}

// record writes the conditions for a finished reconciliation.
func (u *run) record(ctx context.Context, failed error) (reconcile.Result, error) {
	missing, err := u.unavailable(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, retry := u.conclude(failed, missing)
	if err := u.patchStatus(ctx); err != nil {
		return reconcile.Result{}, errors.Join(retry, err)
	}
	return result, retry
}

// conclude sets the conditions for a finished reconciliation, and returns when the next one begins.
// missing is the result of [run.unavailable]. A failure is tried again, with more and more time
// between the attempts, unless only the user can change it.
func (u *run) conclude(failed error, missing string) (reconcile.Result, error) {
	const deployed = "Deployed"
	reason, message := deployed, "the scheduler is deployed, and has bound a pod"
	var needsUser *stalled
	switch {
	case errors.As(failed, &needsUser):
		reason, message = needsUser.reason, describe(failed)
		u.stall(reason, message)
	case failed != nil:
		u.progress("Retrying", describe(failed))
		return reconcile.Result{}, failed
	default:
		u.set(v1alpha1.ConditionStalled, metav1.ConditionFalse, reason, message)
		switch {
		case u.object.Status.Release == nil:
			reason, message = "NoImageForRelease", "no scheduler is deployed"
		case missing != "":
			reason, message = "NotAvailable", missing
		case !u.is(v1alpha1.ConditionVerified):
			reason, message = "NotVerified", "the last change failed: see the condition Verified"
		}
	}
	u.set(v1alpha1.ConditionReconciling, metav1.ConditionFalse, reason, message)
	ready := metav1.ConditionFalse
	if reason == deployed {
		ready = metav1.ConditionTrue
	}
	u.set(v1alpha1.ConditionReady, ready, reason, message)
	switch {
	case needsUser == nil || needsUser.reason == "InvalidSpec":
		return reconcile.Result{RequeueAfter: u.o.Resync + time.Second}, nil
	case needsUser.next.IsZero():
		return reconcile.Result{}, failed
	default:
		return reconcile.Result{RequeueAfter: max(time.Until(needsUser.next), time.Second)}, nil
	}
}

// stall sets the conditions for a change that needs the user. If a scheduler is deployed, its
// credentials are as before.
func (u *run) stall(reason, message string) {
	u.set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	u.object.Status.ObservedGeneration = u.object.Generation
	if reason != "DeployFailed" && reason != "OwnedByOther" && reason != imageRefused {
		return
	}
	u.set(v1alpha1.ConditionVerified, metav1.ConditionFalse, reason, message)
	if u.object.Status.Release == nil {
		u.set(v1alpha1.ConditionCredentialsValid, metav1.ConditionFalse, reason, message)
	}
}
