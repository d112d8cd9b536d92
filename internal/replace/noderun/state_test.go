package noderun

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func waits(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: "i",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}}}
}

func ends(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: "i",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error",
			Message: message}}}
}

func runs(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func TestStateOfAPod(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   state
	}{
		"not seen by a kubelet": {want: state{}},
		"pulling": {status: corev1.PodStatus{InitContainerStatuses: statuses{waits(toolContainer,
			"PodInitializing")}, ContainerStatuses: statuses{waits(mainContainer, "PodInitializing")}}},
		"the pull fails": {status: corev1.PodStatus{InitContainerStatuses: statuses{waits(toolContainer,
			"ImagePullBackOff")}}, want: state{failure: "the node cannot pull image i: m", grace: time.Minute}},
		"a wrong name": {status: corev1.PodStatus{InitContainerStatuses: statuses{waits(toolContainer,
			"InvalidImageName")}}, want: state{failure: "container tool (image i) does not start: InvalidImageName: m"}},
		"no image": {status: corev1.PodStatus{InitContainerStatuses: statuses{waits(toolContainer,
			"ErrImageNeverPull")}}, want: state{failure: "container tool (image i) does not start: ErrImageNeverPull: m"}},
		"an invalid user": {status: corev1.PodStatus{ContainerStatuses: statuses{waits(mainContainer,
			"CreateContainerConfigError")}},
			want: state{failure: "container pmk-sched (image i) does not start: CreateContainerConfigError: m",
				grace: 5 * time.Second}},
		"no such program": {status: corev1.PodStatus{ContainerStatuses: statuses{ends(mainContainer, 128,
			"no such file")}}, want: state{ended: true, started: true, message: "no such file"}},
		"no scheduler in it": {status: corev1.PodStatus{Phase: corev1.PodFailed,
			InitContainerStatuses: statuses{ends(toolContainer, 0, ""), ends(schedulerContainer, 1, "none")},
			ContainerStatuses:     statuses{waits(mainContainer, "PodInitializing")}},
			want: state{ended: true, failure: "container scheduler (image i) exited with code 1: none"}},
		"running": {status: corev1.PodStatus{InitContainerStatuses: statuses{ends(toolContainer, 0, "")},
			ContainerStatuses: statuses{runs(mainContainer)}}, want: state{started: true}},
		"succeeded": {status: corev1.PodStatus{Phase: corev1.PodSucceeded,
			ContainerStatuses: statuses{ends(mainContainer, 0, "{}")}}, want: state{ended: true, started: true, message: "{}"}},
		"killed": {status: corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: statuses{ends(mainContainer, 137, "")}},
			want: state{ended: true, started: true, failure: "it exited with code 137 (Error)"}},
		"rejected by the kubelet": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeAffinity", Message: "m"},
			want: state{ended: true, failure: "the kubelet ended it: NodeAffinity m"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(&corev1.Pod{Status: c.status}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
