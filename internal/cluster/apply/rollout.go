package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

// revisionAnnotation is set by the deployment controller on a Deployment and on the ReplicaSet for
// its current template (k8s.io/kubernetes/pkg/controller/deployment/util, RevisionAnnotation).
const revisionAnnotation = "deployment.kubernetes.io/revision"

// rolloutState is a rollout's state.
type rolloutState string

const (
	rolloutProgressing rolloutState = "progressing"
	rolloutAvailable   rolloutState = "available"
	rolloutFailed      rolloutState = "failed"
)

// observation is a Deployment's state at one time, with facts from earlier observations.
type observation struct {
	now         time.Time
	deployment  *appsv1.Deployment
	replicaSets []appsv1.ReplicaSet
	pods        []corev1.Pod

	// firstSeen is since when a failure (pod, container, reason) has been observed without
	// interruption.
	firstSeen map[string]time.Time
	// away are the nodes that are not ready or cordoned, if pods may be waiting for them.
	away map[string]bool
	// ignored is the number of restarts per container (pod UID, name) that do not count, such as
	// restarts after an API server outage.
	ignored map[string]int32
}

// verdict is an observation's result.
type verdict struct {
	state   rolloutState
	reason  string // one of the Reason constants when failed
	message string
	pods    []string
	err     error // ends the wait for another reason than the Deployment
	// failures are the keys for observation.firstSeen in the next observation.
	failures []string
	// fingerprint changes whenever the Deployment is not stable.
	fingerprint string
	// missing is set if the Deployment is available without pods that wait for nodes.
	missing bool
}

// failure is a pod's failure that may be transient: it counts once it has lasted for its grace
// period.
type failure struct {
	pod, container  string
	reason, message string
	grace           time.Duration
}

func (c failure) key() string { return c.pod + "/" + c.container + "/" + c.reason }

// evaluate returns the verdict on an observation. It is a pure function.
func evaluate(s observation, o WaitOptions) verdict {
	d := s.deployment
	if d.Status.ObservedGeneration < d.Generation {
		return verdict{state: rolloutProgressing, message: "the deployment controller has not observed the change yet"}
	}
	pods := currentPods(d, s.replicaSets, s.pods)
	present, waiting := split(pods, s.away)
	var failures []failure
	for i := range present {
		failures = append(failures, podFailures(&present[i], s.ignored, o)...)
	}
	failures = append(failures, deploymentFailures(d, len(waiting) > 0)...)

	v := verdict{fingerprint: fingerprint(d, pods)}
	for _, c := range failures {
		v.failures = append(v.failures, c.key())
		since, seen := s.firstSeen[c.key()]
		if c.grace == 0 || seen && s.now.Sub(since) >= c.grace {
			v.state, v.reason, v.message = rolloutFailed, c.reason, c.message
			if c.pod != "" {
				v.pods = []string{c.pod}
			}
			return v
		}
	}
	v.state, v.message = progress(d, pods)
	if v.state == rolloutProgressing && completeWithout(d, present, waiting) {
		v.state, v.message, v.missing = rolloutAvailable, waitingMessage(d, present, s.away), true
	}
	if v.state == rolloutProgressing && len(failures) > 0 {
		v.message = failures[0].message
	}
	return v
}

// progress returns a Deployment's state without a failure that counts.
func progress(d *appsv1.Deployment, pods []corev1.Pod) (rolloutState, string) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return rolloutProgressing, err.Error()
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	result, err := status.Compute(u)
	if err != nil {
		return rolloutProgressing, err.Error()
	}
	if result.Status != status.CurrentStatus {
		return rolloutProgressing, result.Message
	}
	for i := range pods {
		if !podstatus.Ready(&pods[i]) {
			return rolloutProgressing, fmt.Sprintf("pod %s is not ready", pods[i].Name)
		}
	}
	return rolloutAvailable, result.Message
}

// currentPods returns the pods from the Deployment's current template, sorted by name, or all its
// pods if its ReplicaSet is unknown.
func currentPods(d *appsv1.Deployment, sets []appsv1.ReplicaSet, pods []corev1.Pod) []corev1.Pod {
	var owner *appsv1.ReplicaSet
	for i := range sets {
		if metav1.IsControlledBy(&sets[i], d) &&
			sets[i].Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			owner = &sets[i]
		}
	}
	var current []corev1.Pod
	for i := range pods {
		if pods[i].DeletionTimestamp == nil && (owner == nil || metav1.IsControlledBy(&pods[i], owner)) {
			current = append(current, pods[i])
		}
	}
	slices.SortFunc(current, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return current
}

// fingerprint has everything that must not change while a Deployment is stable.
func fingerprint(d *appsv1.Deployment, pods []corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d/%d/%d", d.Generation, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	for i := range pods {
		fmt.Fprintf(&b, " %s %t", pods[i].UID, podstatus.Ready(&pods[i]))
		for _, c := range pods[i].Status.ContainerStatuses {
			fmt.Fprintf(&b, " %s=%d", c.Name, c.RestartCount)
		}
	}
	return b.String()
}

// deploymentFailures returns the failures that the deployment controller reports. The deadline does
// not count while pods wait for nodes.
func deploymentFailures(d *appsv1.Deployment, waiting bool) []failure {
	var found []failure
	for _, condition := range d.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == ReasonProgressDeadlineExceeded && !waiting:
			found = append(found, failure{reason: ReasonProgressDeadlineExceeded, message: condition.Message})
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			found = append(found, failure{
				reason: ReasonPodsRejected, grace: rejectionGrace,
				message: "the API server rejects the pod: " + condition.Message,
			})
		}
	}
	return found
}
