//go:build linux && (cases || faults || labs)

// Package extender deploys extenders on a real control-plane node, as a service and as a sidecar,
// with the commands that a user types: a scheduler follows them, they are restarted, and uninstall
// leaves nothing.
package extender

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// scheduler and extender are the names of the deployed scheduler and extender.
const scheduler, extender = "asking", "asked"

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// workers are the nodes that a scheduler chooses among.
var workers = []string{"worker-001", "worker-002"}

// node is the control-plane node, with a Plane that creates pods for groups of nodes.
type node struct {
	*labs.Node
	controlplane.Plane
}

// connect puts two workers into the group.
func connect(t *testing.T, n *labs.Node) *node {
	t.Helper()
	for _, worker := range workers {
		patch := []byte(`{"metadata": {"labels": {"` + controlplane.GroupLabel + `": "` + group + `"}}}`)
		if _, err := n.Kube.CoreV1().Nodes().Patch(t.Context(), worker, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return &node{Node: n, Plane: controlplane.Plane{Kube: n.Kube}}
}

// extender runs a subcommand of `pmk-sched extender` on the node, which has to succeed, and returns
// its output.
func (n *node) extender(t *testing.T, args ...string) string {
	t.Helper()
	r := n.PMKSched(t, extenderArgs(args...)...).OK(t)
	return r.Stdout + r.Stderr
}

// extenderArgs are the arguments of a subcommand, with a short stability window.
func extenderArgs(args ...string) []string {
	return slices.Concat([]string{"extender"}, args, labs.Stable("1s"))
}

// left waits until no pod of a name is left, which takes a moment, and returns the objects that
// are.
func (n *node) left(t *testing.T, name string) (left string) {
	t.Helper()
	run.Eventually(t, "the pods of "+name+" are gone", func(context.Context) (bool, string) {
		left = n.Left(t, name, "")
		return !strings.Contains(left, "pod/"), left
	})
	return left
}
