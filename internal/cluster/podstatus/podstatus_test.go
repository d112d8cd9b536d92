package podstatus

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestClassesOfReasons(t *testing.T) {
	for reason, want := range map[string]struct {
		class             Class
		image, preventing bool
		grace             time.Duration
	}{
		"":                           {Starting, false, false, 0},
		"ContainerCreating":          {Starting, false, false, 0},
		"PodInitializing":            {Starting, false, false, 0},
		"ProviderStarting":           {Starting, false, false, 0},
		"ErrImagePull":               {ImagePull, true, true, time.Minute},
		"ImagePullBackOff":           {ImagePull, true, true, time.Minute},
		"ImageInspectError":          {ImagePull, true, true, time.Minute},
		"RegistryUnavailable":        {ImagePull, true, true, time.Minute},
		"SignatureValidationFailed":  {ImagePull, true, true, time.Minute},
		"ErrImageNeverPull":          {ImageAbsent, true, true, 0},
		"InvalidImageName":           {ImageName, true, true, 0},
		"CreateContainerConfigError": {Config, false, true, startGrace},
		"CreateContainerError":       {Start, false, true, startGrace},
		"RunContainerError":          {Start, false, true, startGrace},
		"PreCreateHookError":         {Start, false, true, startGrace},
		"PreStartHookError":          {Start, false, true, startGrace},
		"PostStartHookError":         {Start, false, true, startGrace},
		"CrashLoopBackOff":           {Crash, false, false, 0},
		"Completed":                  {Crash, false, false, 0},
		"Error":                      {Crash, false, false, 0},
		"OOMKilled":                  {Crash, false, false, 0},
		"StartError":                 {Crash, false, false, 0},
		"ContainerCannotRun":         {Crash, false, false, 0},
		"ContainerStatusUnknown":     {Crash, false, false, 0},
	} {
		c := Classify(reason)
		if c != want.class || c.Image() != want.image || c.Preventing() != want.preventing ||
			c.Grace(time.Minute) != want.grace {
			t.Errorf("%q: class %d, image %t, preventing %t, grace %s", reason, c, c.Image(), c.Preventing(),
				c.Grace(time.Minute))
		}
	}
}

func TestWhyAPodIsNotReady(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	waits := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	ends := func(name string, code int32, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
		}}
	}
	runs := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason,
		message string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: kind, Status: status, Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"ready": {corev1.PodStatus{Conditions: condition(corev1.PodReady, corev1.ConditionTrue, "", ""),
			ContainerStatuses: statuses{runs}}, ""},
		"no status": {corev1.PodStatus{}, "not ready: no status"},
		"probe fails": {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: statuses{runs}},
			"not ready: Running"},
		"not seen": {corev1.PodStatus{Phase: corev1.PodPending}, "not ready: Pending"},
		"no node": {corev1.PodStatus{Conditions: condition(corev1.PodScheduled, corev1.ConditionFalse,
			corev1.PodReasonUnschedulable, "0/1 nodes")}, "not scheduled: 0/1 nodes"},
		"with a node": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: condition(corev1.PodScheduled,
			corev1.ConditionTrue, "", "")}, "not ready: Pending"},
		"creating": {corev1.PodStatus{ContainerStatuses: statuses{waits("main", "ContainerCreating", "")}},
			"container main: ContainerCreating"},
		"image of the second": {corev1.PodStatus{ContainerStatuses: statuses{runs, waits("b", "ErrImagePull", "not found")}},
			"container b: ErrImagePull: not found"},
		"image of an init container": {
			corev1.PodStatus{InitContainerStatuses: statuses{waits("setup", "ErrImagePull", "not found")},
				ContainerStatuses: statuses{waits("main", "PodInitializing", "")}},
			"container setup: ErrImagePull: not found",
		},
		"init containers done": {
			corev1.PodStatus{InitContainerStatuses: statuses{ends("setup", 0, "Completed", "")},
				ContainerStatuses: statuses{waits("main", "RunContainerError", "m\n")}},
			"container main: RunContainerError: m",
		},
		"init container failed": {
			corev1.PodStatus{InitContainerStatuses: statuses{ends("setup", 2, "Error", "")},
				ContainerStatuses: statuses{waits("main", "PodInitializing", "")}},
			"container setup exited with code 2: Error",
		},
		"ended": {corev1.PodStatus{ContainerStatuses: statuses{ends("main", 0, "Completed", "bye")}},
			"container main exited with code 0: Completed: bye"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: c.status}
			if got := WhyNotReady(pod); got != c.want || Ready(pod) != (c.want == "") {
				t.Errorf("got %q, ready %t, want %q", got, Ready(pod), c.want)
			}
		})
	}
}

func TestUnschedulablePodsAreNotGatedPods(t *testing.T) {
	for reason, want := range map[string]bool{corev1.PodReasonUnschedulable: true,
		corev1.PodReasonSchedulingGated: false} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "m"},
		}}}
		if message, ok := Unschedulable(pod); ok != want || ok && message != "m" || Unscheduled(pod) == nil {
			t.Errorf("%s: %q, %t", reason, message, ok)
		}
	}
}

func TestStatusOfAContainerIsFoundByItsName(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "setup"}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", RestartCount: 1}, {Name: "b", RestartCount: 2}},
	}}
	for i, name := range []string{"a", "b"} {
		if got := StatusOf(pod, name); got != &pod.Status.ContainerStatuses[i] {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := StatusOf(pod, "setup"); got != nil {
		t.Errorf("an init container: got %+v", got)
	}
}
