package arbiter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nominated returns a pending pod of the scheduler other that is nominated for the node n.
func nominated(name string, priority int32, requests ...string) *corev1.Pod {
	pod := podOf(name, requests...)
	pod.Spec.SchedulerName, pod.Spec.Priority = "other", new(priority)
	pod.Status.NominatedNodeName = "n"
	return pod
}

func TestRoomIsKeptForNominatedPodsOfOtherSchedulers(t *testing.T) {
	for name, c := range map[string]struct {
		nominated *corev1.Pod
		// change is what happens to the nominated pod before the other one is bound.
		change func(l *Ledger, now *time.Time, pod *corev1.Pod)
		own    string
		want   Decision
	}{
		"a higher priority": {nominated: nominated("a", 10, "cpu", "1500m"), want: Refused},
		"the same priority": {nominated: nominated("a", 5, "cpu", "1500m"), want: Refused},
		"a lower priority":  {nominated: nominated("a", 4, "cpu", "1500m"), want: Admitted},
		"the same scheduler": {nominated: nominated("a", 10, "cpu", "1500m"), own: "other",
			want: Admitted},
		"room for both":    {nominated: nominated("a", 10, "cpu", "1"), want: Admitted},
		"another resource": {nominated: nominated("a", 10, "memory", "4Gi"), want: Admitted},
		"a host port":      {nominated: withPort(nominated("a", 10), "", "TCP", 80), want: Refused},
		"the nomination ends": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) {
				pod.Status.NominatedNodeName = ""
				l.SetPod(NewPod(pod))
			}},
		"another node": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) {
				pod.Status.NominatedNodeName = "m"
				l.SetPod(NewPod(pod))
			}},
		"bound elsewhere": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) { l.SetPod(NewPod(on("m", pod))) }},
		"bound there": {nominated: nominated("a", 10, "cpu", "1"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) { l.SetPod(NewPod(on("n", pod))) }},
		"admitted elsewhere": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) { admit(l, pod, "m") }},
		"deleted": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, _ *time.Time, pod *corev1.Pod) { l.DeletePod(pod.UID) }},
		"after 4 minutes": {nominated: nominated("a", 10, "cpu", "2"), want: Refused,
			change: func(l *Ledger, now *time.Time, pod *corev1.Pod) {
				*now = now.Add(4 * time.Minute)
				l.SetPod(NewPod(pod)) // reported again
			}},
		"after 6 minutes": {nominated: nominated("a", 10, "cpu", "2"), want: Admitted,
			change: func(l *Ledger, now *time.Time, pod *corev1.Pod) {
				*now = now.Add(6 * time.Minute)
				l.SetPod(NewPod(pod))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			p := withPort(podOf("p", "cpu", "1"), "", "TCP", 80)
			p.Spec.SchedulerName, p.Spec.Priority = c.own, new(int32(5))
			l, now := ledgerOf(c.nominated, p)
			if c.change != nil {
				c.change(l, now, c.nominated)
			}
			got, short := admit(l, p, "n")
			if got != c.want {
				t.Fatalf("%s (%+v), expected %s", got, short, c.want)
			}
			if short != nil && (!short.Keeps || short.Taker.Name != "a") {
				t.Errorf("%+v", short)
			}
		})
	}
}

// The pod itself gets the room that is kept for it.
func TestANominatedPodIsBoundToItsNode(t *testing.T) {
	a := nominated("a", 10, "cpu", "2")
	l, _ := ledgerOf(a)
	if got, short := admit(l, a, "n"); got != Admitted {
		t.Errorf("%s, %+v", got, short)
	}
}

func TestARefusalNamesTheNominatedPod(t *testing.T) {
	p := podOf("p", "cpu", "1")
	l, _ := ledgerOf(nominated("a", 10, "cpu", "1500m"), p)
	_, short := admit(l, p, "n")
	bind := &binding{pod: types.NamespacedName{Namespace: "default", Name: "p"}, node: "n"}
	want := "node n has not enough cpu left for pod default/p: requested 1, left 500m; " +
		"the pod of another scheduler that is nominated for it is default/a"
	if diff := cmp.Diff(want, refusal(bind, short)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsLeftOfNominatedPods(t *testing.T) {
	a := nominated("a", 10, "cpu", "1")
	a.Status.NominatedNodeName = "gone"
	l, _ := ledgerOf(a)
	l.DeleteNode("n")
	l.DeletePod(a.UID)
	if len(l.nodes)+len(l.pods) != 0 {
		t.Errorf("left: %v %v", l.nodes, l.pods)
	}
}
