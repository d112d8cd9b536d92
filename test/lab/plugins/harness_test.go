//go:build linux && (cases || faults || labs)

package plugins

import (
	"os"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// scheduler is the name of the deployed scheduler.
const scheduler = "plugins"

func TestMain(m *testing.M) { os.Exit(labs.Main(m)) }

// node is the control-plane node, with a client for custom resources.
type node struct {
	*labs.Node
	dynamic dynamic.Interface
}

func connect(t *testing.T, n *labs.Node) *node {
	t.Helper()
	client, err := dynamic.NewForConfig(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &node{Node: n, dynamic: client}
}
