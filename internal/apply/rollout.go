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

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// revisionAnnotation is set by the deployment controller on a Deployment and on the ReplicaSet of its present template
// (k8s.io/kubernetes/pkg/controller/deployment/util, RevisionAnnotation).
const revisionAnnotation = "deployment.kubernetes.io/revision"

// rolloutState is where a rollout stands.
type rolloutState string

const (
	rolloutProgressing rolloutState = "progressing"
	rolloutAvailable   rolloutState = "available"
	rolloutFailed      rolloutState = "failed"
)

// snapshot is what one look at a Deployment saw, and what is remembered of earlier looks.
type snapshot struct {
	now         time.Time
	deployment  *appsv1.Deployment
	replicaSets []appsv1.ReplicaSet
	pods        []corev1.Pod

	// firstSeen tells since when a complaint (pod, container, reason) has been seen without a break.
	firstSeen map[string]time.Time
	// forgiven are how many restarts of a container (pod UID, name) do not count: those that an outage of the API server explains.
	forgiven map[string]int32
}

// verdict is what a snapshot means.
type verdict struct {
	state   rolloutState
	reason  string // one of the Reason constants when failed
	message string // for people
	pods    []string
	err     error // what ended the wait, when that was not the Deployment
	// complaints are the keys for snapshot.firstSeen of the next look.
	complaints []string
	// fingerprint changes whenever something happens that makes the Deployment not stable.
	fingerprint string
}

// complaint is something wrong with a pod that may pass: it counts when it was seen for longer than its grace.
type complaint struct {
	pod, container  string
	reason, message string
	grace           time.Duration
}

func (c complaint) key() string { return c.pod + "/" + c.container + "/" + c.reason }

// judge decides what a snapshot means. It is a pure function of its arguments.
func judge(s snapshot, o WaitOptions) verdict {
	d := s.deployment
	if d.Status.ObservedGeneration < d.Generation {
		return verdict{state: rolloutProgressing, message: "the deployment controller has not taken notice yet"}
	}
	pods := currentPods(d, s.replicaSets, s.pods)
	var complaints []complaint
	for i := range pods {
		complaints = append(complaints, podComplaints(&pods[i], s.forgiven, o)...)
	}
	complaints = append(complaints, deploymentComplaints(d)...)

	v := verdict{fingerprint: fingerprint(d, pods)}
	for _, c := range complaints {
		v.complaints = append(v.complaints, c.key())
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
	if v.state == rolloutProgressing && len(complaints) > 0 {
		v.message = complaints[0].message
	}
	return v
}

// progress tells how far a Deployment without any final complaint is.
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
		if !kubeapi.PodReady(&pods[i]) {
			return rolloutProgressing, fmt.Sprintf("pod %s is not ready", pods[i].Name)
		}
	}
	return rolloutAvailable, result.Message
}

// currentPods returns the pods of the Deployment's present template, sorted by name; all of its pods where its ReplicaSets do not tell.
func currentPods(d *appsv1.Deployment, sets []appsv1.ReplicaSet, pods []corev1.Pod) []corev1.Pod {
	var owner *appsv1.ReplicaSet
	for i := range sets {
		if metav1.IsControlledBy(&sets[i], d) && sets[i].Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
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

// fingerprint holds everything that must stay the same while a Deployment is called stable.
func fingerprint(d *appsv1.Deployment, pods []corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d/%d/%d", d.Generation, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	for i := range pods {
		fmt.Fprintf(&b, " %s %t", pods[i].UID, kubeapi.PodReady(&pods[i]))
		for _, c := range pods[i].Status.ContainerStatuses {
			fmt.Fprintf(&b, " %s=%d", c.Name, c.RestartCount)
		}
	}
	return b.String()
}

func deploymentComplaints(d *appsv1.Deployment) []complaint {
	var found []complaint
	for _, condition := range d.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == ReasonProgressDeadlineExceeded:
			found = append(found, complaint{reason: ReasonProgressDeadlineExceeded, message: condition.Message})
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			found = append(found, complaint{
				reason: ReasonPodsRefused, grace: refusalGrace,
				message: "the API server does not accept the pod: " + condition.Message,
			})
		}
	}
	return found
}
