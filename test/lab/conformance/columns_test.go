//go:build linux && labs

package conformance

import (
	"fmt"
	"testing"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// use makes the scheduler of a column schedule the pods of the specs.
func use(t *testing.T, n *labs.Node, column conformance.Column, gates gate) {
	t.Helper()
	if column == conformance.Stock {
		return
	}
	text := conformance.Description
	if gates.gates != "" {
		text += "  args: [\"" + gates.flag() + "\"]\n"
	}
	bundled, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		t.Fatal(err)
	}
	image, file := n.Image(t, bundled...), run.WriteFile(t, "pmk-sched.yaml", text)
	args := append([]string{"-f", file, "--image", image}, labs.Stable("10s")...)
	if column == conformance.Replaced {
		n.PMKSched(t, append([]string{"replace", "--yes"}, args...)...).OK(t)
		n.PMKSched(t, "verify", "--default").OK(t)
		return
	}
	n.PMKSched(t, append([]string{"deploy"}, args...)...).OK(t)
	n.PMKSched(t, "verify", "--name", conformance.Scheduler).OK(t)
	route(t, n)
}

// systemPod has the names of all system pods of Google's nodes in its own. The suite expects these
// on each node: most specs wait a minute for them, and continue without.
const systemPod = `---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-fluentd-elasticsearch-node-problem-detector-%[1]s, namespace: kube-system}
spec: {nodeName: %[1]s, containers: [{name: main, image: %[2]q}]}
`

// prepare gives each worker a different zone, because the specs of clusters with several zones need
// one, and a system pod.
func prepare(t *testing.T, n *labs.Node) {
	t.Helper()
	for _, worker := range n.Workers() {
		n.Kubectl(t, "label", "node", worker, "topology.kubernetes.io/zone=zone-of-"+worker)
		n.Apply(t, fmt.Sprintf(systemPod, worker, lab.PauseImage))
	}
}
