//go:build linux

package labs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Load builds an image on this machine, where the modules are, into the node's containerd, once for
// each reference. With the layout hosted, any worker may run it: each of them gets the image.
func (n *Node) Load(t testing.TB, reference string, args ...string) {
	t.Helper()
	for _, node := range n.runners(t) {
		node.load(t, reference, args...)
	}
}

// runners returns the nodes that may run a scheduler: this one, or each worker of a hosted control
// plane.
func (n *Node) runners(t testing.TB) (nodes []*Node) {
	t.Helper()
	if n.Layout != lab.LayoutHosted {
		return []*Node{n}
	}
	for _, worker := range n.Workers() {
		nodes = append(nodes, n.On(t, worker))
	}
	return nodes
}

func (n *Node) load(t testing.TB, reference string, args ...string) {
	t.Helper()
	n.once(t, n.NodeName+"."+reference, func() {
		socket := n.Path(image.DefaultContainerdSocket)
		run.PMKSched(t, slices.Concat([]string{"build"}, args, []string{"--busybox", "/bin/busybox", "--load",
			"containerd=" + socket, "--tag", reference})...).OK(t)
	})
}

// Image returns the reference of a scheduler of the lab's release, with built-in plugins, which the
// node has.
func (n *Node) Image(t testing.TB, plugins ...string) string {
	t.Helper()
	reference := "localhost/" + strings.Join(append([]string{"scheduler"}, plugins...), "-") + ":" + n.Release
	args := []string{"--branch", n.Release}
	for _, plugin := range plugins {
		args = append(args, "--with", "builtin:"+plugin)
	}
	n.Load(t, reference, args...)
	return reference
}

// Stable returns the flag that sets how long a new scheduler has to be ready without a restart
// before pmk-sched trusts it.
func Stable(duration string) []string { return []string{"--stable-for", duration} }

// EnvStableFor is the environment variable that sets it for commands that a test runs as they are
// printed.
const EnvStableFor = "PMK_SCHED_STABLE_FOR"

// Deploy deploys a scheduler, which is uninstalled when the test ends. more may be any flags of
// deploy.
func (n *Node) Deploy(t testing.TB, name, image string, more ...string) run.Result {
	t.Helper()
	n.UninstallLater(t, name)
	return n.TryDeploy(t, name, image, more...).OK(t)
}

// DeployArgs are the arguments of a deployment that keeps apart from others on the same node.
func (n *Node) DeployArgs(t testing.TB, name, image string, more ...string) []string {
	t.Helper()
	args := append([]string{"deploy", "--name", name, "--image", image}, Stable("1s")...)
	return append(append(args, "--port", n.Port(t)), more...)
}

// TryDeploy deploys a scheduler, which may fail.
func (n *Node) TryDeploy(t testing.TB, name, image string, more ...string) run.Result {
	t.Helper()
	return n.PMKSched(t, n.DeployArgs(t, name, image, more...)...)
}

// UninstallLater uninstalls a scheduler when the test ends. If the test failed, it logs the
// scheduler's pods and their logs.
func (n *Node) UninstallLater(t testing.TB, name string) {
	t.Cleanup(func() { n.Uninstall(t, name) })
	t.Cleanup(func() {
		if t.Failed() {
			n.logPods(t, name)
		}
	})
}

// kinds are all kinds of objects that pmk-sched makes.
const kinds = "deployments,pods,services,poddisruptionbudgets,networkpolicies,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases"

// Uninstall uninstalls a scheduler and fails the test unless nothing of it is left.
func (n *Node) Uninstall(t testing.TB, name string) {
	t.Helper()
	n.PMKSched(t, "uninstall", "--name", name, "--yes").OK(t)
	if left := n.Left(t, name, ""); left != "" {
		t.Errorf("left behind by uninstall: %s", left)
	}
}

// Left lists the objects of a scheduler or an extender. selector may exclude some.
func (n *Node) Left(t testing.TB, name, selector string) string {
	t.Helper()
	return n.Kubectl(t, "get", kinds, "-A", "-l", "app.kubernetes.io/instance="+name+selector, "-o", "name")
}

// LeftNothing fails the test if the cluster has objects of a scheduler that was never deployed,
// other than the record of the failure.
func (n *Node) LeftNothing(t testing.TB, name string) {
	t.Helper()
	if left := n.Left(t, name, ",!pmk-sched.io/revision"); left != "" {
		t.Errorf("a failed deployment left objects behind: %s", left)
	}
}

// Pods returns the manifest of a Deployment whose pods tolerate every node and name the given
// scheduler; "" names none.
func Pods(name, scheduler, image string, replicas int) string {
	line := ""
	if scheduler != "" {
		line = "schedulerName: " + scheduler
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      %[2]s
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: %[3]s, command: [/bin/sleep, "100000"]}]
`, name, line, image, replicas)
}
