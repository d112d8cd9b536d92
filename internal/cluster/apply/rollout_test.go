package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// availableDeployment has one replica and is all there.
func availableDeployment() *appsv1.Deployment {
	one := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "a", UID: "d", Generation: 2,
			Annotations: map[string]string{revisionAnnotation: "2"}},
		Spec: appsv1.DeploymentSpec{Replicas: &one},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		},
	}
}

func progressingDeployment() *appsv1.Deployment {
	d := availableDeployment()
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0
	d.Status.Conditions[0].Status = corev1.ConditionFalse
	d.Status.Conditions[1].Reason = "ReplicaSetUpdated"
	return d
}

func controlledBy(kind string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, UID: uid, Controller: &yes}}
}

// replicaSet returns the ReplicaSet of a revision of the Deployment.
func replicaSet(revision string) appsv1.ReplicaSet {
	return appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID("rs" + revision), OwnerReferences: controlledBy("Deployment",
			"d"), Annotations: map[string]string{revisionAnnotation: revision},
	}}
}

// podOf is a pod of a revision with one container.
func podOf(revision string, ready bool, c corev1.ContainerStatus) corev1.Pod {
	c.Name, c.Image = "c", "i:1"
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p" + revision, UID: types.UID("p" + revision),
			OwnerReferences: controlledBy("ReplicaSet", types.UID("rs"+revision))},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
			ContainerStatuses: []corev1.ContainerStatus{c},
		},
	}
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
		Message: message}}}
}

// ended is a container that runs again after it has ended that often, last with that exit code.
func ended(times, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		RestartCount: times, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}},
	}
}

func unschedulable() corev1.Pod {
	pod := podOf("2", false, corev1.ContainerStatus{})
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes"}}
	return pod
}

func TestEvaluate(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	terminated := corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}
	backOff := ended(2, 1)
	backOff.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	stale := availableDeployment()
	stale.Generation = 3
	exceeded := progressingDeployment()
	exceeded.Status.Conditions[1] = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing,
		Reason: "ProgressDeadlineExceeded", Message: "timed out"}
	refused := progressingDeployment()
	refused.Status.Conditions = append(refused.Status.Conditions,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
			Message: "exceeded quota"})
	evicted := podOf("2", false, corev1.ContainerStatus{})
	evicted.Status.Phase, evicted.Status.Reason, evicted.Status.Message = corev1.PodFailed, "Evicted", "disk pressure"
	going := podOf("2", false, backOff)
	going.DeletionTimestamp = &metav1.Time{Time: start}
	init := podOf("2", false, running)
	init.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}}}}

	cases := map[string]struct {
		deployment *appsv1.Deployment
		pods       []corev1.Pod
		seenFor    time.Duration // how long all failures have been observed
		ignored    int32
		state      rolloutState
		reason     string
		message    string
	}{
		"available": {availableDeployment(), []corev1.Pod{podOf("2", true, running)}, 0, 0,
			rolloutAvailable, "", "Deployment is available. Replicas: 1"},
		"available, pod not ready any more": {availableDeployment(), []corev1.Pod{podOf("2", false, running)}, 0, 0,
			rolloutProgressing, "", "pod p2 is not ready"},
		"progressing": {progressingDeployment(), []corev1.Pod{podOf("2", false, running)}, 0, 0,
			rolloutProgressing, "", "Available: 0/1"},
		"not noticed yet": {stale, []corev1.Pod{podOf("2", false, backOff)}, 0, 0, rolloutProgressing, "",
			"the deployment controller has not observed the change yet"},
		"crashed once, ready again": {availableDeployment(), []corev1.Pod{podOf("2", true, ended(1, 1))}, 0, 0,
			rolloutFailed, ReasonCrash, "container c of pod p2 exited with code 1, restarted 1 time"},
		"ended without an error": {availableDeployment(), []corev1.Pod{podOf("2", true, ended(1, 0))}, 0, 0,
			rolloutAvailable, "", "Deployment is available. Replicas: 1"},
		"crash loop": {progressingDeployment(), []corev1.Pod{podOf("2", false, backOff)}, 0, 0,
			rolloutFailed, ReasonCrash, "container c of pod p2 exited with code 1, restarted 2 times"},
		"crash loop without last state": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("CrashLoopBackOff", ""))}, 0, -1, rolloutFailed, ReasonCrash,
			"container c of pod p2 keeps exiting"},
		"ended just now": {progressingDeployment(), []corev1.Pod{podOf("2", false, terminated)}, 0, 0,
			rolloutFailed, ReasonCrash, "container c of pod p2 exited with code 137 (OOMKilled)"},
		"init container ended": {progressingDeployment(), []corev1.Pod{init}, 0, 0, rolloutFailed, ReasonCrash,
			"container setup of pod p2 exited with code 2"},
		"crashed with the API server": {availableDeployment(), []corev1.Pod{podOf("2", true, ended(1, 1))}, 0, 1,
			rolloutAvailable, "", "Deployment is available. Replicas: 1"},
		"crashed once more": {availableDeployment(), []corev1.Pod{podOf("2", true, ended(2, 1))}, 0, 1,
			rolloutFailed, ReasonCrash, "container c of pod p2 exited with code 1, restarted 2 times"},
		"old pod crashes": {progressingDeployment(), []corev1.Pod{podOf("1", false, backOff),
			podOf("2", false, running)}, 0, 0, rolloutProgressing, "", "Available: 0/1"},
		"pod that goes crashes": {progressingDeployment(), []corev1.Pod{going}, 0, 0, rolloutProgressing, "",
			"Available: 0/1"},
		"image not pulled at first": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("ErrImagePull", "no"))}, 0, 0, rolloutProgressing, "",
			"image i:1 of pod p2 cannot be pulled: no"},
		"image not pulled for long": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("ImagePullBackOff", "no"))}, 5 * time.Second, 0, rolloutFailed,
			ReasonImagePull, "image i:1 of pod p2 cannot be pulled: no"},
		"image never pulled": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("ErrImageNeverPull", "no"))}, 5 * time.Second, 0, rolloutFailed,
			ReasonImagePull, "image i:1 of pod p2 cannot be pulled: no"},
		"image name": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("InvalidImageName", "no"))}, 0, 0, rolloutFailed, ReasonImageName,
			`image name "i:1" of pod p2 is invalid: no`},
		"Secret missing at first": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("CreateContainerConfigError", "no"))}, time.Second, 0, rolloutProgressing, "",
			"container c of pod p2 does not start: no"},
		"Secret missing": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("CreateContainerConfigError", "no"))}, 5 * time.Second, 0, rolloutFailed,
			ReasonContainerConfig, "container c of pod p2 does not start: no"},
		"entrypoint missing": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("RunContainerError", "no"))}, 5 * time.Second, 0, rolloutFailed,
			ReasonContainerStart, "container c of pod p2 does not start: no"},
		"starting": {progressingDeployment(),
			[]corev1.Pod{podOf("2", false, waiting("ContainerCreating", ""))}, time.Hour, 0, rolloutProgressing, "",
			"Available: 0/1"},
		"no node at first": {progressingDeployment(), []corev1.Pod{unschedulable()}, time.Second, 0,
			rolloutProgressing, "", "no node accepts pod p2: 0/1 nodes"},
		"no node": {progressingDeployment(), []corev1.Pod{unschedulable()}, 30 * time.Second, 0,
			rolloutFailed, ReasonUnschedulable, "no node accepts pod p2: 0/1 nodes"},
		"evicted": {progressingDeployment(), []corev1.Pod{evicted}, 10 * time.Second, 0,
			rolloutFailed, ReasonPodFailed, "pod p2 failed: Evicted disk pressure"},
		"progress deadline": {exceeded, nil, 0, 0, rolloutFailed, ReasonProgressDeadlineExceeded,
			"timed out"},
		"pods refused at first": {refused, nil, time.Second, 0, rolloutProgressing, "",
			"the API server rejects the pod: exceeded quota"},
		"pods refused": {refused, nil, 10 * time.Second, 0, rolloutFailed, ReasonPodsRejected,
			"the API server rejects the pod: exceeded quota"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := observation{
				now: start, deployment: tc.deployment, replicaSets: []appsv1.ReplicaSet{replicaSet("1"),
					replicaSet("2")}, pods: tc.pods,
				ignored: map[string]int32{"p2/c": tc.ignored},
			}
			options := WaitOptions{}.withDefaults()
			s.firstSeen = map[string]time.Time{}
			for _, key := range evaluate(s, options).failures {
				s.firstSeen[key] = start.Add(-tc.seenFor)
			}
			got := evaluate(s, options)
			want := verdict{state: tc.state, reason: tc.reason, message: tc.message}
			got.pods, got.failures, got.fingerprint = nil, nil, ""
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFingerprintChangesWithWhateverIsNotStable(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	base := fingerprint(availableDeployment(), []corev1.Pod{podOf("2", true, running)})
	generation, replicas := availableDeployment(), availableDeployment()
	generation.Generation++
	replicas.Status.AvailableReplicas = 0
	other := podOf("2", true, running)
	other.UID = "other"
	for name, got := range map[string]string{
		"generation":  fingerprint(generation, []corev1.Pod{podOf("2", true, running)}),
		"replicas":    fingerprint(replicas, []corev1.Pod{podOf("2", true, running)}),
		"another pod": fingerprint(availableDeployment(), []corev1.Pod{other}),
		"readiness":   fingerprint(availableDeployment(), []corev1.Pod{podOf("2", false, running)}),
		"restart":     fingerprint(availableDeployment(), []corev1.Pod{podOf("2", true, ended(1, 0))}),
	} {
		if got == base {
			t.Errorf("%s does not change the fingerprint %s", name, base)
		}
	}
	if again := fingerprint(availableDeployment(), []corev1.Pod{podOf("2", true, running)}); again != base {
		t.Errorf("the same gives %s and %s", base, again)
	}
}

func TestStableNeedsTimeAndLooks(t *testing.T) {
	client, err := New(restConfig(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	available := verdict{state: rolloutAvailable, fingerprint: "1"}
	cases := map[string]struct {
		looks []verdict
		step  time.Duration
		want  int // number of the last look, or 0 if it never becomes stable
	}{
		"long and often": {[]verdict{available, available, available, available, available}, 3 * time.Second,
			5},
		"long but not often": {[]verdict{available, available}, time.Minute, 0},
		"often but not long": {[]verdict{available, available, available, available, available, available},
			time.Second, 0},
		"a restart begins again": {[]verdict{available, available, available, {state: rolloutAvailable,
			fingerprint: "2"}, available, available, available, available, available}, 3 * time.Second, 9},
		"not available for one look": {[]verdict{available, available, available, available, {state: rolloutProgressing},
			available, available, available, available, available}, 3 * time.Second, 10},
		"a slow look is as good as two": {[]verdict{available, available, available, available, available}, time.Hour, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &waiter{client: client, options: WaitOptions{}.withDefaults()}
			got := 0
			for i, v := range tc.looks {
				if w.stable(start.Add(time.Duration(i)*tc.step), v) {
					got = i + 1
					break
				}
			}
			if got != tc.want {
				t.Errorf("stable at look %d, want %d", got, tc.want)
			}
		})
	}
}
