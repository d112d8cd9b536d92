//go:build linux

package simulate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/preemption"
)

func priorityClass(name string, value int, more string) string {
	return fmt.Sprintf("---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\n%s\n", name,
		value, more)
}

// evictions is a full node of three pods, one of which has a budget, and a full node of pods of the
// highest priority.
func evictions() string {
	classed := func(class string, priority int, node string) string {
		return fmt.Sprintf("priorityClassName: %s\npriority: %d\nnodeName: %s", class, priority, node)
	}
	return priorityClass("high", 1000, "") + priorityClass("batch", 10, "") +
		priorityClass("low", 5, "") + priorityClass("patient", 500,
		"preemptionPolicy: Never") +
		node("a", 4, "", "") + node("b", 4, "", "") +
		pod("job-1", "1", "labels: {app: job}", classed("low", 5, "a"),
			"phase: Running, startTime: \"2026-01-01T00:00:00Z\"") +
		pod("job-2", "1", "labels: {app: job}", classed("low", 5, "a"),
			"phase: Running, startTime: \"2026-01-02T00:00:00Z\"") +
		pod("free", "2", "", "nodeName: a", "phase: Running") +
		pod("db", "4", "", classed("high", 1000, "b"), "phase: Running") + `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: job, namespace: shop}
spec: {minAvailable: 2, selector: {matchLabels: {app: job}}}
status: {disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 2}
`
}

// preemptions returns who can evict whom, with the default scheduler of a release.
func preemptions(t *testing.T, release, manifests, requests string) *preemption.Result {
	t.Helper()
	objects := newObjects(t, manifests)
	var given corev1.ResourceList
	if requests != "" {
		given = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(requests)}
	}
	var result *preemption.Result
	withSimulator(t, release, func(sim *simulator) (err error) {
		result, err = sim.server.Preemptions(t.Context(), sim.options(t, objects, pack.Scheduler{}), given)
		return err
	})
	return result
}

// Each landing is decided in the state of the snapshot: the highest class evicts everything on a
// node, in spite of a budget, and the pods are there again for the next class. Schedulers evict in
// a goroutine from 1.33 on, and clear the nomination from 1.34 on.
func TestPodOfEachClassLandsInTheStateOfTheSnapshot(t *testing.T) {
	atReleases(t, checkLandings)
}

func checkLandings(t *testing.T, release string) {
	t.Helper()
	r := preemptions(t, release, evictions(), "3")
	var got []string
	for _, l := range r.Landings {
		text := l.Class + " on " + l.Node + ":"
		for _, v := range l.Evicted {
			text += " " + v.Name
			if len(v.Violated) > 0 {
				text += " in spite of " + strings.Join(v.Violated, ", ")
			}
		}
		got = append(got, text)
		if (l.Node == "") != strings.Contains(l.Reason, "Insufficient cpu") {
			t.Errorf("class %s: node %q, reason %q", l.Class, l.Node, l.Reason)
		}
	}
	equal(t, "landings", []string{"high on a: free job-2 in spite of job", "patient on :",
		"batch on a: free job-2 in spite of job", "low on :", "(none) on :"}, got)
}
