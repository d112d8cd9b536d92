package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestHighestPriorityOfATime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for size := range 40 {
		var all []nomination
		at := time.Duration(0)
		for range size {
			at += time.Duration(random.IntN(3))
			all = append(all, nomination{at: at, priority: random.Int32N(20) - 10})
		}
		n := newNominations(all)
		for from := time.Duration(-1); from <= at+1; from++ {
			for to := from - 1; to <= at+1; to++ {
				var want []int32
				for _, one := range all {
					if one.at >= from && one.at <= to && (len(want) == 0 || one.priority > want[0]) {
						want = []int32{one.priority}
					}
				}
				if got, ok := n.highest(from, to); ok != (len(want) > 0) || ok && got != want[0] {
					t.Fatalf("%v from %d to %d: got %d, %t, want %v", all, from, to, got, ok, want)
				}
			}
		}
	}
}

// Each nomination compared with each deletion would take hours.
func TestManyPodsAreEvictedAtOnce(t *testing.T) {
	const pods = 200_000
	h := NewHistory(time.Minute, nil)
	pod := func(name, node, nominated string, priority int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)},
			Spec:   corev1.PodSpec{NodeName: node, Priority: &priority},
			Status: corev1.PodStatus{NominatedNodeName: nominated}}
	}
	waiting, victim := pod("waiting", "", "a", 1), pod("victim", "a", "", 1)
	for range pods {
		h.Pod(time.Second, waiting)
	}
	for i := range pods {
		victim.Name, victim.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i))
		h.Pod(time.Second, victim)
		h.PodGone(time.Second, victim)
	}
	h.Finish()
	if l := h.Life("0"); l.Preempted || !l.IsEnded {
		t.Errorf("got %+v", l)
	}
}
