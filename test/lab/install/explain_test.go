//go:build linux && labs

package install

import (
	"context"
	"fmt"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const limitedWorkload = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: %[1]s}
spec: {hard: {pods: "0"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "localhost/none:1"}]}
`

const waitingPod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: default}
spec: {schedulerName: %[1]s, containers: [{name: main, image: "localhost/none:1"}]}
`

// awaitCause waits until `explain` names a cause.
func awaitCause(t *testing.T, n *labs.Node, namespace, pod string, want explain.Cause) {
	t.Helper()
	run.Eventually(t, "the cause is "+string(want), func(context.Context) (bool, string) {
		shown := n.PMKSched(t, "explain", "-n", namespace, "-o", "json", pod)
		if shown.Code != 0 {
			return false, shown.String()
		}
		report := run.Decode[explain.Report](t, shown.Stdout)
		return len(report.Findings) > 0 && report.Findings[0].Cause == want, shown.String()
	})
}

// A quota keeps a ReplicaSet from creating pods: its events explain the pods that are missing.
func TestExplainNamesTheQuotaOfMissingPods(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	n.Apply(t, fmt.Sprintf(limitedWorkload, name))
	t.Cleanup(func() { n.Kubectl(t, "delete", "namespace", name, "--wait=false") })
	awaitCause(t, n, name, "web", explain.Quota)
}

// A scheduler without replicas, and one that was never deployed, explain pods that nothing places.
// The pods have the names of their schedulers.
func TestExplainNamesTheSchedulerThatDoesNotRun(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.Deploy(t, name, n.Image(t))
	n.Kubectl(t, "scale", "deployment", "-n", "kube-system", name, "--replicas=0")
	n.Kubectl(t, "wait", "--for=delete", "pod", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name,
		"--timeout=2m")
	for scheduler, want := range map[string]explain.Cause{name: explain.Down, name + "-gone": explain.NoScheduler} {
		n.Apply(t, fmt.Sprintf(waitingPod, scheduler))
		t.Cleanup(func() { n.Kubectl(t, "delete", "pod", scheduler, "--wait=false") })
		awaitCause(t, n, "default", scheduler, want)
	}
}
