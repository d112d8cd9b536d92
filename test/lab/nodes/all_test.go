//go:build linux && labs

package nodes

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// podImage is the image of pmk-sched for the pods of a run through all nodes.
const podImage = "localhost/pmk-sched:test"

// result is the output of a run through all nodes for one node.
type result struct {
	Node, Image, Manifest, Backup string
	Changed                       bool
}

// allNodes are the nodes of a cluster and their original manifests, for tests of runs through all
// nodes.
type allNodes struct {
	nodes     []*labs.Node
	originals [][]byte
}

// newAllNodes loads the images into every node.
func newAllNodes(t *testing.T, nodes []*labs.Node) (a *allNodes, scheduler string) {
	t.Helper()
	a = &allNodes{nodes: nodes}
	for _, node := range nodes {
		run.PMKSched(t, "build", "self", "--busybox", "/bin/busybox", "--load",
			"containerd="+node.Path(image.DefaultContainerdSocket), "--tag", podImage).OK(t)
		scheduler = node.Image(t)
		a.originals = append(a.originals, read(t, node, kubeadmManifest))
	}
	return a, scheduler
}

// replaced are the names of the nodes whose manifest pmk-sched wrote.
func (a *allNodes) replaced(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, node := range a.nodes {
		if staticpod.Managed(read(t, node, kubeadmManifest)) {
			names = append(names, node.NodeName)
		}
	}
	return names
}

// awaitPod waits until pmk-sched runs in a pod on a node.
func (a *allNodes) awaitPod(t *testing.T, node string) {
	t.Helper()
	run.Eventually(t, "pmk-sched runs on "+node, func(context.Context) (bool, string) {
		seen := a.nodes[0].Exec(t, "kubectl", "get", "pod", "-n", "kube-system", "pmk-sched-run-"+node, "-o",
			"jsonpath={.status.phase}")
		return seen.Stdout == "Running", seen.String()
	})
}

// leftNothing checks that neither a pod nor a Secret nor the lock of a run is left.
func (a *allNodes) leftNothing(t *testing.T) {
	t.Helper()
	const selector = "app.kubernetes.io/managed-by=pmk-sched,app.kubernetes.io/component=node-run"
	if left := a.nodes[0].Kubectl(t, "get", "pods,secrets", "-n", "kube-system", "-l", selector, "-o",
		"name"); left != "" {
		t.Errorf("left: %s", left)
	}
	if left := a.nodes[0].Kubectl(t, "get", "leases", "-n", "kube-system", "pmk-sched-default-scheduler",
		"--ignore-not-found", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
}

func changed(results []result) (names []string) {
	for _, r := range results {
		if r.Changed {
			names = append(names, r.Node)
		}
	}
	return names
}

// throughAllNodes replaces the default scheduler of every node with one command on the first, which
// is killed after a node and run again, and restores all of them.
func throughAllNodes(t *testing.T, nodes []*labs.Node) {
	a, scheduler := newAllNodes(t, nodes)
	first := nodes[0]
	command := append([]string{"replace", "--image", scheduler, "--all-nodes", "--pod-image", podImage, "--yes", "-o",
		"json"}, labs.Stable("1s")...)

	type line struct {
		Node        string
		Done, Leads bool
	}
	var plan []line
	run.Eventually(t, "a default scheduler leads, which were all restarted", func(context.Context) (bool, string) {
		text := first.PMKSched(t, append(command, "--dry-run")...).OK(t).Stdout
		plan = run.Decode[[]line](t, text)
		return slices.ContainsFunc(plan, func(l line) bool { return l.Leads }), text
	})
	if len(plan) != len(nodes) || plan[0].Leads || !plan[len(plan)-1].Leads || plan[0].Done {
		t.Fatalf("plan %+v", plan)
	}
	if got := a.replaced(t); got != nil {
		t.Fatalf("a dry run replaced the schedulers of %v", got)
	}

	// A run with a wrong image stops at the first node, and changes none.
	wrong := slices.Clone(command)
	wrong[slices.Index(wrong, scheduler)] = "localhost/missing:v1"
	first.PMKSched(t, wrong...).Fails(t, 1, "node "+plan[0].Node, "localhost/missing:v1", "0 of 3 nodes are done")
	if got := a.replaced(t); got != nil {
		t.Fatalf("a failed run replaced the schedulers of %v", got)
	}
	a.leftNothing(t)

	// A run that is killed while its pod works on the first node, and one that is killed after the
	// second. The pod finishes without its run.
	if r := first.AtStep(t, "inspect the cluster",
		func(pid int) { a.awaitPod(t, plan[0].Node); labs.Signal(t, syscall.SIGKILL)(pid) }, command...); r.Code == 0 {
		t.Fatalf("the command was not killed: %s", r)
	}
	first.KillAtStep(t, "wait until the scheduler of node "+plan[1].Node+" is ready", command...)
	if got, want := a.replaced(t), []string{plan[0].Node, plan[1].Node}; !slices.Equal(slices.Sorted(slices.Values(got)),
		slices.Sorted(slices.Values(want))) {
		t.Fatalf("after the killed runs the schedulers of %v are replaced, want %v", got, want)
	}
	first.PMKSched(t, "status").OK(t).Prints(t, plan[0].Node, plan[1].Node, plan[2].Node)
	results := run.Decode[[]result](t, first.PMKSched(t, command...).OK(t).Stdout)
	if got := changed(results); !slices.Equal(got, []string{plan[2].Node}) {
		t.Errorf("the last run changed %v, want %s only", got, plan[2].Node)
	}
	if got := a.replaced(t); len(got) != len(nodes) {
		t.Errorf("only the schedulers of %v are replaced", got)
	}
	a.leftNothing(t)
	for _, node := range nodes {
		node.PMKSched(t, "status").OK(t) // each compares its own files
		if mode := node.Shell(t, "stat -c %a /var/lib/pmk-sched"); strings.TrimSpace(mode) != "700" {
			t.Errorf("mode of the backups' directory on %s: %s", node.NodeName, mode)
		}
	}
	first.PMKSched(t, "verify", "--default").OK(t)
	bound(t, first, "default-scheduler")

	// One more run finds nothing to do.
	if got := changed(run.Decode[[]result](t, first.PMKSched(t, command...).OK(t).Stdout)); got != nil {
		t.Errorf("a run on nodes that are done changed %v", got)
	}

	restore := []string{"restore", "--all-nodes", "--pod-image", podImage, "--yes", "-o", "json"}
	if got := changed(run.Decode[[]result](t, first.PMKSched(t, restore...).OK(t).Stdout)); len(got) != len(nodes) {
		t.Errorf("restored: %v", got)
	}
	for i, node := range nodes {
		if !bytes.Equal(read(t, node, kubeadmManifest), a.originals[i]) {
			t.Errorf("the manifest of %s is not the original one", node.NodeName)
		}
	}
	a.leftNothing(t)
	bound(t, first, "default-scheduler")
}
