//go:build linux

package plugins

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// slots is a resource that only the nodes of gangs have.
const slots corev1.ResourceName = "example.com/slots"

// Labels of the pods of a gang.
const (
	groupLabel  = "scheduling.x-k8s.io/pod-group"
	memberLabel = "pmk-sched.io/min-member"
)

// In total the three nodes have room for four pods, but each of them has room for one only: the
// gang does not begin, so that none of its pods holds a node.
func gangOfFour(t *testing.T, s subject) {
	x := startGangs(t, s, "four", 3, 3)
	x.createWith(t, "a", 4, 4, 2)
	run.Eventually(t, "each pod of the gang has the room as its reason", func(context.Context) (bool, string) {
		if n := x.bound(t, "a"); n > 0 {
			t.Fatalf("%d pods of the gang are bound", n)
		}
		refused := true
		for _, pod := range x.list(t, "a") {
			refused = refused && strings.Contains(message(&pod), "have room for 3, and it needs 4")
		}
		return refused, x.reasons(t, "a")
	})
	metrics, err := controlplane.ReadMetrics(t.Context(), x.metrics)
	if err != nil {
		t.Fatal(err)
	}
	if results := metrics.By(t, "pmk_sched_coscheduling_attempts_total", "result"); results["unplaced"] > 0 {
		t.Errorf("the gang began: attempts %v", results)
	}
	if n := x.bound(t, "a"); n > 0 {
		t.Errorf("%d pods of the gang are bound", n)
	}
	x.withoutFlush(t, "a node is added", func() {
		x.node(t, "more", amounts{slots: "2"}, nil)
		x.awaitGang(t, "a", 4)
	})
}

// gangs is a scheduler with the plugin and nodes with slots.
type gangs struct{ *cluster }

func startGangs(t *testing.T, s subject, name string, nodes, slotsOfNode int) gangs {
	t.Helper()
	x := gangs{s.start(t, name, profiles.Plugin{Name: coscheduling.Name}, coscheduling.Rules)}
	for i := range nodes {
		x.node(t, strconv.Itoa(i), amounts{slots: strconv.Itoa(slotsOfNode)}, nil)
	}
	return x
}

// createWith creates the pods of a group. If size is 0, the pods get no size label.
func (x gangs) createWith(t *testing.T, group string, pods, size, slotsOfPod int) {
	t.Helper()
	labels := map[string]string{groupLabel: group}
	if size > 0 {
		labels[memberLabel] = strconv.Itoa(size)
	}
	for i := range pods {
		pod := x.pod(fmt.Sprintf("%s-%d", group, i), amounts{slots: strconv.Itoa(slotsOfPod)})
		pod.Labels = labels
		x.create(t, pod)
	}
}

func (x gangs) list(t *testing.T, group string) []corev1.Pod {
	t.Helper()
	list, err := x.Kube.CoreV1().Pods(x.name).List(t.Context(),
		metav1.ListOptions{LabelSelector: groupLabel + "=" + group})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (x gangs) bound(t *testing.T, group string) (n int) {
	t.Helper()
	for _, pod := range x.list(t, group) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (x gangs) awaitGang(t *testing.T, group string, size int) {
	t.Helper()
	run.Eventually(t, "group "+group+" is placed", func(context.Context) (bool, string) {
		n := x.bound(t, group)
		return n == size, fmt.Sprint(n, " are bound; ", x.reasons(t, group))
	})
}

// reasons are the messages of the pods that are not bound.
func (x gangs) reasons(t *testing.T, group string) string {
	t.Helper()
	var all []string
	for _, pod := range x.list(t, group) {
		if pod.Spec.NodeName == "" {
			all = append(all, pod.Name+": "+message(&pod))
		}
	}
	return strings.Join(all, "; ")
}
