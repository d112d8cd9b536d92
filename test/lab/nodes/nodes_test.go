//go:build linux && labs

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

const (
	name            = "survivor"
	kubeadmManifest = "/etc/kubernetes/manifests/kube-scheduler.yaml"
)

// Nodes of the control plane may be lost one at a time, also the one whose kubeconfig was read, and
// each node's default scheduler is replaced and restored. The images are shaped like upstream's.
func TestSchedulersOnThreeControlPlaneNodesOfKubeadm(t *testing.T) {
	for _, release := range []string{labs.Release, "v1.29.2", "v1.37.1"} {
		t.Run(release, func(t *testing.T) { onThreeOfKubeadm(t, release) })
	}
}

func onThreeOfKubeadm(t *testing.T, release string) {
	nodes := three(t, release, lab.LayoutKubeadm)
	deployed(t, nodes, "node-role.kubernetes.io/control-plane")
	for i, node := range nodes {
		if !t.Run("without node "+node.NodeName, func(t *testing.T) { survives(t, node, nodes[(i+1)%len(nodes)]) }) {
			t.FailNow() // the cluster is not whole
		}
	}
	t.Run("replaced node by node", func(t *testing.T) { replaced(t, nodes, kubeadmManifest) })
	t.Run("replaced by one command", func(t *testing.T) { throughAllNodes(t, nodes) })
	uninstalled(t, nodes[0])
}

// three starts a lab with three control-plane nodes.
func three(t *testing.T, release, layout string) []*labs.Node {
	t.Helper()
	first := labs.Start(t, labs.Options{Release: release, Layout: layout, Masters: 3, Workers: 2})
	var nodes []*labs.Node
	for _, node := range first.Lab.Nodes() {
		nodes = append(nodes, first.On(t, node.Name()))
	}
	if len(nodes) != 3 {
		t.Fatalf("%d nodes", len(nodes))
	}
	return nodes
}

// deployed deploys a scheduler with default flags, and checks that the nodes have the label and a
// replica each.
func deployed(t *testing.T, nodes []*labs.Node, label string) {
	t.Helper()
	first := nodes[0]
	image := "localhost/" + name + ":" + first.Release
	for _, node := range nodes {
		node.PMKSched(t, "build", "--busybox", "/bin/busybox", "--tag", image, "--load", "containerd").OK(t)
	}
	first.PMKSched(t, "detect").OK(t).Prints(t, "3 with label "+label)
	first.PMKSched(t, append([]string{"deploy", "--name", name, "--image", image}, labs.Stable("1s")...)...).OK(t)
	on := first.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o",
		"jsonpath={.items[*].spec.nodeName}")
	for _, node := range nodes {
		if !strings.Contains(" "+on+" ", " "+node.NodeName+" ") {
			t.Errorf("no replica on %s: %s", node.NodeName, on)
		}
	}
	first.PMKSched(t, "verify", "--name", name).OK(t)
}

func uninstalled(t *testing.T, n *labs.Node) {
	t.Helper()
	n.PMKSched(t, "uninstall", "--name", name, "--yes").OK(t)
	n.LeftNothing(t, name)
}

// survives stops a node: pods of the second and of the default scheduler are still bound, and the
// replicas of the second one on the other nodes are the same as before, none of which was
// restarted.
func survives(t *testing.T, lost, other *labs.Node) {
	l, before, began := lost.Lab, replicasWithout(t, other, lost), time.Now()
	if err := l.StopNode(t.Context(), lost.NodeName); err != nil {
		t.Fatal(err)
	}
	for _, scheduler := range []string{name, "default-scheduler"} {
		bound(t, other, scheduler)
	}
	if after := replicasWithout(t, other, lost); after != before {
		t.Errorf("the replicas on the other nodes did not survive; before:\n%s\nafter:\n%s", before, after)
	}
	if err := l.StartNode(t.Context(), lost.NodeName); err != nil {
		t.Fatal(err)
	}
	lost.AwaitRestarted(t, name, began)
	run.Eventually(t, "all replicas are ready", func(context.Context) (bool, string) {
		r := other.PMKSched(t, "status")
		return r.Code == 0 && strings.Contains(r.Stdout, "3/3"), r.String()
	})
}

// replicasWithout lists the replicas of the second scheduler on the nodes other than one, with the
// restarts of each.
func replicasWithout(t *testing.T, n, lost *labs.Node) string {
	t.Helper()
	const form = `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}`
	replicas := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name,
		"--field-selector", "spec.nodeName!="+lost.NodeName, "-o", form)
	if lines := strings.Count(replicas, "\n") + 1; lines != 2 {
		t.Fatalf("%d replicas run on the other nodes, want 2:\n%s", lines, replicas)
	}
	return replicas
}

// bound creates a pod of a scheduler and waits until it is bound. While etcd elects a leader,
// requests fail.
func bound(t *testing.T, n *labs.Node, scheduler string) {
	t.Helper()
	pod := "probe-" + scheduler
	file := run.WriteFile(t, "pod.json", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"schedulerName": %q,
		"nodeSelector": {"type": "kwok"}, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
		"containers": [{"name": "main", "image": %q}]}}`, pod, scheduler, lab.PauseImage))
	run.Eventually(t, "a pod of "+scheduler+" is bound", func(context.Context) (bool, string) {
		seen := n.Exec(t, "sh", "-c", "kubectl apply -f "+file+" >&2 && kubectl get pod "+pod+" -o jsonpath={.spec.nodeName}")
		return seen.Code == 0 && seen.Stdout != "", seen.String()
	})
	run.Eventually(t, "the pod is deleted", func(context.Context) (bool, string) {
		seen := n.Exec(t, "kubectl", "delete", "pod", pod, "--ignore-not-found")
		return seen.Code == 0, seen.String()
	})
}

// replaced replaces the default scheduler of every node, keeping its image, and restores the
// manifests to the same bytes.
func replaced(t *testing.T, nodes []*labs.Node, manifest string) {
	var originals [][]byte
	for _, node := range nodes {
		originals = append(originals, read(t, node, manifest))
		replace(t, node)
	}
	nodes[0].PMKSched(t, "verify", "--default").OK(t)
	nodes[0].PMKSched(t, "status").OK(t)
	bound(t, nodes[0], "default-scheduler")
	for i, node := range nodes {
		node.PMKSched(t, "restore", "--yes").OK(t)
		if !bytes.Equal(read(t, node, manifest), originals[i]) {
			t.Errorf("the manifest of %s is not the original one", node.NodeName)
		}
	}
	nodes[0].PMKSched(t, "verify", "--default").Fails(t, 3, "not replaced")
}

func replace(t *testing.T, n *labs.Node) {
	t.Helper()
	n.PMKSched(t, append([]string{"replace", "--preset", "binpack", "--yes"}, labs.Stable("1s")...)...).OK(t)
}

// read reads a file of a node.
func read(t *testing.T, n *labs.Node, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(n.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
