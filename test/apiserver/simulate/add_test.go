//go:build linux

package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// deployment returns a Deployment whose pods have containers and more of their specification.
func deployment(name string, replicas int, containers, spec string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [%[3]s]
%[4]s
`, name, replicas, containers, strings.ReplaceAll("      "+spec, "\n", "\n      "))
}

func requesting(resources string) string {
	return "{name: main, image: web, resources: {requests: {" + resources + "}}}"
}

// A PriorityClass of the cluster applies: pods that are asked for evict others, copies that are
// tried do not.
func TestAddedPodsHaveTheirPriority(t *testing.T) {
	t.Parallel()
	r := simulateAdd(t, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n"+
		node("a", 4, "", "")+pod("low-1", "2", "", "nodeName: a", "phase: Running")+pod("low-2", "2", "", "nodeName: a",
		"phase: Running"),
		deployment("web", 1, requesting("cpu: 2"), "priorityClassName: high"), 1, scenario.DefaultLimit)
	equal(t, "placed, evicted and copies", [3]int{1, 1, 1}, [3]int{len(r.Placements), len(r.Evicted), r.Capacity.Copies})
}
