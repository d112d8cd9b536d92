package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// threeReplicas is a Deployment of three replicas, all of the current template, of which some are
// available.
func threeReplicas(available int32) *appsv1.Deployment {
	d := progressingDeployment()
	three := int32(3)
	d.Spec.Replicas, d.Spec.Template.Spec.HostNetwork = &three, true
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, available,
		available
	return d
}

// onNode is a pod of the current revision on a node.
func onNode(name, node string, ready bool) corev1.Pod {
	pod := podOf("2", ready,
		corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	pod.Name, pod.UID, pod.Spec.NodeName = name, types.UID(name), node
	return pod
}

// pending is a pod of the current revision that no node accepts.
func pending(name string) corev1.Pod {
	pod := unschedulable()
	pod.Name, pod.UID = name, types.UID(name)
	return pod
}

func TestRolloutIsCompleteWithoutNodesThatAreAway(t *testing.T) {
	away := map[string]bool{"c": true}
	old := onNode("old", "b", true)
	old.OwnerReferences = controlledBy("ReplicaSet", "rs1")
	mixed, exceeded := threeReplicas(2), threeReplicas(2)
	mixed.Status.UpdatedReplicas = 2
	exceeded.Status.Conditions[1] = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing,
		Reason: ReasonProgressDeadlineExceeded}
	crashing := onNode("b", "b", false)
	crashing.Status.ContainerStatuses[0] = ended(3, 1)
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		away       map[string]bool
		state      rolloutState
		reason     string
	}{
		"one pod pending": {threeReplicas(2),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), pending("p")}, away, rolloutAvailable, ""},
		"one pod on the node": {threeReplicas(2),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), onNode("p", "c", false)}, away, rolloutAvailable, ""},
		"deadline exceeded meanwhile": {exceeded, []corev1.Pod{onNode("a", "a", true), onNode("b", "b", true), pending("p")},
			away, rolloutAvailable, ""},
		"the node is ready": {threeReplicas(2), []corev1.Pod{onNode("a", "a", true), onNode("b", "b", true),
			pending("p")}, nil, rolloutFailed, ReasonUnschedulable},
		"more pods pending than nodes": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), pending("p"), pending("q")},
			away, rolloutFailed, ReasonUnschedulable},
		"another pod not ready": {threeReplicas(1),
			[]corev1.Pod{onNode("a", "a", true), onNode("b", "b", false), pending("p")}, away, rolloutProgressing, ""},
		"another pod crashes": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), crashing, pending("p")}, away,
			rolloutFailed, ReasonCrash},
		"an old pod runs": {mixed, []corev1.Pod{onNode("a", "a", true), old, pending("p")}, away,
			rolloutProgressing, ""},
		"the third does not exist yet": {threeReplicas(1), []corev1.Pod{onNode("a", "a", true), pending("p")}, away,
			rolloutProgressing, ""},
		"every pod waits for a node": {threeReplicas(0), []corev1.Pod{pending("p"), pending("q"), pending("r")},
			map[string]bool{"a": true, "b": true, "c": true}, rolloutFailed, ReasonUnschedulable},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation{
				now: start, deployment: tc.deployment, replicaSets: []appsv1.ReplicaSet{replicaSet("1"),
					replicaSet("2")}, pods: tc.pods, away: tc.away,
			}
			o := WaitOptions{}.withDefaults()
			s.firstSeen = map[string]time.Time{}
			for _, key := range evaluate(s, o).failures {
				s.firstSeen[key] = start.Add(-time.Hour)
			}
			got := evaluate(s, o)
			if got.state != tc.state || got.reason != tc.reason {
				t.Errorf("got %s %s: %s", got.state, got.reason, got.message)
			}
			if got.missing != (tc.state == rolloutAvailable) {
				t.Errorf("missing: %v", got.missing)
			}
			if want := "2 of 3 replicas are available: the others wait for nodes that are not ready or cordoned: c"; got.missing && got.message != want {
				t.Errorf("got %q, want %q", got.message, want)
			}
		})
	}
}
