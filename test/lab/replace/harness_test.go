//go:build linux

// Package replace tests replacing the default scheduler on control-plane nodes, and restoring it.
package replace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// node is a control-plane node that one test has for itself.
type node struct {
	*labs.Node
	// original is the manifest before anything was replaced.
	original []byte
	// manifest is the path of the scheduler's static pod.
	manifest string
}

// manifests are the paths of the scheduler's static pod by layout.
var manifests = map[string]string{
	lab.LayoutKubeadm: "/etc/kubernetes/manifests/kube-scheduler.yaml",
	lab.LayoutPMK:     "/etc/pf9/kube.d/master.yaml",
}

// exclusive returns the node of an exclusive lab. The kubelet does not remember the restarts of
// earlier tests.
func exclusive(t testing.TB, layout string) *node {
	t.Helper()
	n := prepare(t, labs.Exclusive(t, layout), manifests[layout])
	used := filepath.Join(labs.Dir(), n.Name+".replaced")
	if _, err := os.Stat(used); err == nil {
		n.forgetRestarts(t)
	}
	if err := os.WriteFile(used, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

func prepare(t testing.TB, l *labs.Node, manifest string) *node {
	t.Helper()
	n := unchanged(t, l, manifest)
	t.Cleanup(func() {
		// A test that failed leaves the lab to the next one.
		if t.Failed() {
			n.PMKSched(t, "restore", "--yes", "--force")
		}
	})
	return n
}

// unchanged returns a node for a test that does not restart the scheduler.
func unchanged(t testing.TB, l *labs.Node, manifest string) *node {
	t.Helper()
	n := &node{Node: l, manifest: manifest}
	n.original = n.read(t, n.manifest)
	return n
}

// forgetRestarts restarts the kubelet. The kubelet delays a container that it has started a short
// time ago, twice as long each time, and forgets that only when it is restarted. A user replaces
// once; the tests do it again and again.
//
// It returns when the new kubelet mounts volumes: if a volume leaves the manifest before, the
// kubelet waits two minutes for it and keeps the old scheduler.
func (n *node) forgetRestarts(t testing.TB) {
	t.Helper()
	file := filepath.Join(n.Lab.LogDir(), "kubelet.log")
	starts := func() int {
		log, _ := os.ReadFile(file) // read again by Eventually
		return bytes.Count(log, []byte("Reconciler: start to sync state"))
	}
	before := starts()
	if err := n.Lab.RestartNode(run.Context(t)); err != nil {
		log, _ := os.ReadFile(file)
		for line := range strings.Lines(string(log)) {
			if strings.HasPrefix(line, "Error:") || strings.Contains(line, "command failed") ||
				strings.Contains(line, "Failed to") {
				t.Log(line)
			}
		}
		t.Fatal(err)
	}
	run.Eventually(t, "the kubelet mounts volumes", func(context.Context) (bool, string) {
		now := starts()
		return now > before, fmt.Sprintf("it started to %d times", now)
	})
	n.AwaitReady(t)
}

// read reads a file of the node.
func (n *node) read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(n.Path(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// replace runs pmk-sched replace with a short stability window.
func (n *node) replace(t testing.TB, args ...string) run.Result {
	t.Helper()
	return n.PMKSched(t, n.replaceArgs(args...)...)
}

func (n *node) replaceArgs(args ...string) []string {
	return append(append([]string{"replace", "--yes"}, labs.Stable("1s")...), args...)
}

// restore restores the original manifest and fails the test unless it is byte for byte the same and
// its scheduler works.
func (n *node) restore(t testing.TB) {
	t.Helper()
	n.PMKSched(t, "restore", "--yes").OK(t)
	n.isOriginal(t)
}

// isOriginal fails the test unless the manifest is the original one and its scheduler works.
func (n *node) isOriginal(t testing.TB) {
	t.Helper()
	if got := n.read(t, n.manifest); !bytes.Equal(got, n.original) {
		t.Errorf("the manifest is not the original one:\n%s", got)
	}
	for _, pattern := range []string{"etc/*/*/pmk-sched-*.yaml", "etc/pf9/kube.d/configs/pmk-sched-*.yaml"} {
		if left, _ := filepath.Glob(n.Path(pattern)); len(left) > 0 {
			t.Errorf("configurations are left: %v", left)
		}
	}
	n.schedules(t)
}

// schedules fails the test unless the API server answers and a pod that names no scheduler is
// bound.
func (n *node) schedules(t testing.TB) {
	t.Helper()
	n.Kubectl(t, "get", "--raw", "/readyz")
	manifest := fmt.Sprintf(`---
{apiVersion: v1, kind: Pod, metadata: {generateName: probe-, namespace: default}, spec: {tolerations: [{operator: Exists}], terminationGracePeriodSeconds: 0,
  containers: [{name: main, image: %q}]}}`, lab.PauseImage)
	pod := strings.TrimSpace(n.Shell(t, "cat <<'END' | kubectl create -o name -f -\n"+manifest+"\nEND"))
	run.Eventually(t, "a pod is bound", func(context.Context) (bool, string) {
		seen := n.Exec(t, "kubectl", "get", pod, "-n", "default", "-o", "jsonpath={.spec.nodeName}")
		return seen.Stdout != "", seen.String()
	})
	n.Kubectl(t, "delete", pod, "-n", "default", "--wait=false")
}

// apiServer returns the ID of the API server's container: it stays the same unless the API server
// is restarted.
func (n *node) apiServer(t testing.TB) string {
	t.Helper()
	id := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-o",
		`jsonpath={.items[*].status.containerStatuses[?(@.name=="kube-apiserver")].containerID}`)
	if !strings.HasPrefix(id, "containerd://") {
		t.Fatalf("the container of the API server is %q", id)
	}
	return id
}

// keepsAPIServer fails the test if the API server is restarted before the function that it returns
// is called.
func (n *node) keepsAPIServer(t testing.TB) (check func()) {
	t.Helper()
	before := n.apiServer(t)
	return func() {
		t.Helper()
		if after := n.apiServer(t); after != before {
			t.Errorf("the API server was restarted: its container was %s and is %s", before, after)
		}
	}
}
