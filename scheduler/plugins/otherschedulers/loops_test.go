package otherschedulers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// victim returns a pod of an owner on node n that terminates.
func victim(name, owner string) *corev1.Pod {
	pod := podOf(name, "other", 0, "4")
	pod.Spec.NodeName, pod.DeletionTimestamp = "n", &metav1.Time{Time: time.Unix(1, 0)}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, UID: types.UID("uid-" + owner),
		Controller: new(true)}}
	return pod
}

// round lets preemption try a pod, and evict pods for it.
func round(t *testing.T, p *OtherSchedulers, now *time.Time, pod *corev1.Pod, victims ...*corev1.Pod) string {
	t.Helper()
	got := filter(t, p, pod, nodeOf(), nil, []*corev1.Pod{podOf("any", "own", 0, "4")})
	*now = now.Add(time.Second)
	for _, v := range victims {
		p.seen(v)
		p.seen(v)
		p.gone(v)
	}
	pod.Status.NominatedNodeName = "n"
	p.seen(pod)
	*now = now.Add(9 * time.Second)
	return got
}

func TestAPodThatEvictsPodsOfOneOwnerAgainAndAgainIsHeldBack(t *testing.T) {
	const stopped = "the pod may not evict others for a while"
	for name, c := range map[string]struct {
		victims func(round int) []*corev1.Pod
		between time.Duration
		want    string
	}{
		"one pod each time": {victims: func(i int) []*corev1.Pod { return []*corev1.Pod{victim(fmt.Sprint("v", i), "web")} },
			want: stopped},
		"several each time": {victims: func(i int) []*corev1.Pod {
			return []*corev1.Pod{victim(fmt.Sprint("v", i), "web"), victim(fmt.Sprint("w", i), "web")}
		}, want: stopped},
		"all at once": {victims: func(i int) []*corev1.Pod {
			if i > 0 {
				return nil
			}
			return []*corev1.Pod{victim("a", "web"), victim("b", "web"), victim("c", "web")}
		}},
		"of different owners": {victims: func(i int) []*corev1.Pod {
			return []*corev1.Pod{victim(fmt.Sprint("v", i), fmt.Sprint("web", i))}
		}},
		"on another node": {victims: func(i int) []*corev1.Pod {
			v := victim(fmt.Sprint("v", i), "web")
			v.Spec.NodeName = "m"
			return []*corev1.Pod{v}
		}},
		"of the same priority": {victims: func(i int) []*corev1.Pod {
			v := victim(fmt.Sprint("v", i), "web")
			v.Spec.Priority = new(int32(5))
			return []*corev1.Pod{v}
		}},
		"drained": {victims: func(i int) []*corev1.Pod {
			v := victim(fmt.Sprint("v", i), "web")
			v.Status.Conditions = []corev1.PodCondition{{Type: "DisruptionTarget", Status: corev1.ConditionTrue,
				Reason: "EvictionByEvictionAPI"}}
			return []*corev1.Pod{v}
		}},
		"preempted, as the API server says": {victims: func(i int) []*corev1.Pod {
			v := victim(fmt.Sprint("v", i), "web")
			v.Status.Conditions = []corev1.PodCondition{{Type: "DisruptionTarget", Status: corev1.ConditionTrue,
				Reason: "PreemptionByScheduler"}}
			return []*corev1.Pod{v}
		}, want: stopped},
		"rarely": {victims: func(i int) []*corev1.Pod { return []*corev1.Pod{victim(fmt.Sprint("v", i), "web")} },
			between: 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p, h, now := start(Arguments{VictimsOf: []string{Any}})
			pod := podOf("p", "own", 5, "4")
			for i := range mostRounds {
				if got := round(t, p, now, pod, c.victims(i)...); got != "" {
					t.Fatalf("round %d: %s", i, got)
				}
				*now = now.Add(c.between)
			}
			for range 3 {
				if got := round(t, p, now, pod); got != c.want {
					t.Fatalf("%q, want %q", got, c.want)
				}
			}
			if events := h.Events(); (len(events) == 1) != (c.want != "") || len(events) > 1 {
				t.Errorf("events: %q", events)
			}
			// A node with room is not refused.
			if got := filter(t, p, pod, nodeOf(), nil, nil); got != "" {
				t.Error(got)
			}
			*now = now.Add(loopTime)
			if got := round(t, p, now, pod); got != "" {
				t.Errorf("after %s: %s", loopTime, got)
			}
		})
	}
}

func TestAnEventDoesNotNameObjectsOfOtherNamespaces(t *testing.T) {
	for namespace, want := range map[string]string{"team": "pods of ReplicaSet web were evicted 3 times within 10 minutes",
		"secret": "pods of the ReplicaSet in another namespace with the UID uid-web were evicted"} {
		p, h, now := start(Arguments{VictimsOf: []string{Any}})
		pod := podOf("p", "own", 5, "4")
		for i := range mostRounds {
			v := victim(fmt.Sprint("v", i), "web")
			v.Namespace = namespace
			round(t, p, now, pod, v)
		}
		round(t, p, now, pod)
		if events := h.Events(); len(events) != 1 || !strings.Contains(events[0], want) ||
			strings.Contains(events[0], "secret") {
			t.Errorf("%q, want %q", events, want)
		}
	}
}

func TestNothingIsLeftOfPodsThatAreGone(t *testing.T) {
	p, _, now := start(Arguments{})
	pod := podOf("p", "own", 5, "4")
	round(t, p, now, pod, victim("v", "web"))
	p.gone(pod)
	*now = now.Add(2 * loopTime)
	p.loops.tries(podOf("q", "own", 5, "4"))
	if l := p.loops; len(l.pods) != 1 || len(l.terminating)+len(l.evicted) != 0 {
		t.Errorf("%d, %d, %d", len(l.pods), len(l.terminating), len(l.evicted))
	}
	p.seen(podOf("q", "own", 5, "4"))
	bound := podOf("q", "own", 5, "4")
	bound.Spec.NodeName = "n"
	if p.seen(bound); len(p.loops.pods) != 0 {
		t.Error("a bound pod is left")
	}
}
