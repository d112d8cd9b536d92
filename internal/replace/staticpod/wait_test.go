package staticpod

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The machines of all control-plane nodes may have the same host name, so that the holders of the
// lease differ in their UUIDs only.
func TestThePreviousHolderOfTheLeaseIsAnotherNodesSchedulerIfItStillRenews(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	type lease struct {
		holder            string
		acquired, renewed int // seconds from now
	}
	before := lease{"same_1", -100, -3}
	for name, tc := range map[string]struct {
		alone  bool
		leases []lease // from the time on that the new container runs
		want   string
	}{
		"the holder has ended":             {false, []lease{{"same_1", -100, -1}, {"same_1", -100, -1}}, "still held"},
		"the holder is of another node":    {false, []lease{{"same_1", -100, -2}, {"same_1", -100, 0}}, ""},
		"another one just acquired it":     {false, []lease{{"same_2", -1, -1}}, "just acquired"},
		"another one has it":               {false, []lease{{"same_2", -3, -1}}, ""},
		"it was released":                  {false, []lease{{"", -1, -1}}, "no scheduler holds"},
		"it expired":                       {false, []lease{{"same_2", -100, -90}}, "no scheduler holds"},
		"the only scheduler has ended":     {true, []lease{{"same_1", -100, -1}, {"same_1", -100, -1}}, "still held"},
		"the only scheduler is a new one":  {true, []lease{{"same_2", -1, -1}}, ""},
		"the only scheduler was restarted": {true, []lease{{"same_1", -100, -1}, {"same_2", -1, -1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(seconds int) *metav1.MicroTime {
				return &metav1.MicroTime{Time: now.Add(time.Duration(seconds) * time.Second)}
			}
			seen := func(l lease) *Seen {
				return &Seen{Hash: l.holder, Ready: true, Holder: l.holder, pod: &corev1.Pod{}, lease: &coordinationv1.Lease{
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &l.holder, AcquireTime: at(l.acquired), RenewTime: at(l.renewed)}}}
			}
			w := newWait(&Watch{Elects: true, Alone: tc.alone}, Want{Before: seen(before), Changed: true, Pinned: true})
			status := &corev1.ContainerStatus{ContainerID: "new",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
			got := ""
			for _, l := range tc.leases {
				got = w.missing(t.Context(), seen(l), status)
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The kubelet may start, and then stop for the new manifest, the container of a manifest that
// another program wrote just before. That is no failure of the new scheduler, whose own failures
// are found at the latest when it was restarted.
func TestAContainerThatWasStoppedForTheNewManifestIsNoFailure(t *testing.T) {
	type ended struct {
		id     string
		code   int32
		reason string
	}
	for name, c := range map[string]struct {
		ended []ended // one after the other
		want  string  // the failure at the last one
	}{
		"the container from before":           {[]ended{{"before", 7, "Error"}}, ""},
		"stopped before it handled signals":   {[]ended{{"other", 2, "Error"}}, ""},
		"stopped":                             {[]ended{{"other", 0, "Completed"}}, ""},
		"stopped with a signal":               {[]ended{{"other", 143, "Error"}}, ""},
		"killed":                              {[]ended{{"other", 137, "Error"}}, ""},
		"seen again":                          {[]ended{{"other", 2, "Error"}, {"other", 2, "Error"}}, ""},
		"the new one fails":                   {[]ended{{"new", 1, "Error"}}, "exit status 1"},
		"the new one needs more memory":       {[]ended{{"new", 137, "OOMKilled"}}, "exit status 137"},
		"the new one fails after another one": {[]ended{{"other", 2, "Error"}, {"new", 7, "Error"}}, "exit status 7"},
		"the new one panics again and again":  {[]ended{{"new-1", 2, "Error"}, {"new-2", 2, "Error"}}, "exit status 2"},
	} {
		w := newWait(&Watch{Container: "kube-scheduler"}, Want{Forward: true, Changed: true,
			Before: &Seen{ContainerID: "before", pod: &corev1.Pod{}}})
		got := ""
		for _, e := range c.ended {
			status := &corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ContainerID: e.id, ExitCode: e.code, Reason: e.reason}}}
			got = w.failed(&Seen{pod: &corev1.Pod{}}, status)
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
