//go:build linux

package install

import (
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

type revision struct {
	Revision      int    `json:"revision"`
	Status        string `json:"status"`
	Current       bool   `json:"current"`
	By            string `json:"by"`
	Release       string `json:"release"`
	Image         string `json:"image"`
	Configuration string `json:"configuration"`
	Origin        string `json:"origin"`
	Reason        string `json:"reason"`
}

func history(t *testing.T, n *labs.Node, name string) []revision {
	t.Helper()
	return run.Decode[[]revision](t, n.PMKSched(t, "history", "--name", name, "-o", "json").OK(t).Stdout)
}

// deployer returns a function that deploys a scheduler, each time on the same port.
func deployer(t *testing.T, n *labs.Node, name string) func(image string, more ...string) run.Result {
	n.UninstallLater(t, name)
	args := append([]string{"deploy", "--name", name, "--port", n.Port(t)}, labs.Stable("1s")...)
	return func(image string, more ...string) run.Result {
		t.Helper()
		return n.PMKSched(t, slices.Concat(args, []string{"--image", image}, more)...)
	}
}
