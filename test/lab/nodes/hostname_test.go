//go:build linux && labs

package nodes

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// Cloned machines may all have the host name of one of the nodes. The holders of a lease differ in
// their UUIDs only.
func TestSchedulersOnControlPlaneNodesWithOneHostName(t *testing.T) {
	nodes := three(t, labs.Release, lab.LayoutKubeadm)
	for _, node := range nodes {
		node.Shell(t, "echo "+nodes[2].NodeName+" > /proc/sys/kernel/hostname")
		node.KillContainer(t, "kube-scheduler-"+node.NodeName, "kube-scheduler")
	}
	deployed(t, nodes, "node-role.kubernetes.io/control-plane")
	nodes[0].PMKSched(t, "logs", "--name", name).OK(t).Prints(t, " leader] ")

	for _, leads := range []bool{false, true} {
		node := chooseNode(t, nodes, leads)
		plan := nodes[0].PMKSched(t, "replace", "--preset", "binpack", "--all-nodes").OK(t)
		lines := strings.Split(strings.TrimSpace(plan.Stdout), "\n")
		if leads && !strings.Contains(lines[len(lines)-1], "--node "+node.NodeName) {
			t.Errorf("the leader %s is not the last node:\n%s", node.NodeName, plan.Stdout)
		}
		replace(t, node)
		node.PMKSched(t, "restore", "--yes").OK(t)
	}
	replaced(t, nodes, kubeadmManifest)
	uninstalled(t, nodes[0])
}

// chooseNode returns a node whose default scheduler leads, or one whose scheduler does not, by the
// logs. `status` has to name the same leader.
func chooseNode(t *testing.T, nodes []*labs.Node, leads bool) (chosen *labs.Node) {
	t.Helper()
	run.Eventually(t, "the log of one scheduler says that it leads", func(context.Context) (bool, string) {
		var leaders, others []*labs.Node
		for _, node := range nodes {
			log := node.Exec(t, "kubectl", "logs", "-n", "kube-system", "kube-scheduler-"+node.NodeName)
			if log.Code != 0 {
				return false, log.String()
			}
			if strings.Contains(log.Stdout, "uccessfully acquired lease") {
				leaders = append(leaders, node)
			} else {
				others = append(others, node)
			}
		}
		if len(leaders) != 1 {
			return false, "leaders: " + names(leaders)
		}
		if chosen = others[0]; leads {
			chosen = leaders[0]
		}
		var status struct {
			Nodes []struct {
				Node  string
				Leads bool
			}
		}
		out := nodes[0].PMKSched(t, "status", "-o", "json")
		if err := json.Unmarshal([]byte(out.Stdout), &status); err != nil {
			return false, out.String()
		}
		for _, node := range status.Nodes {
			if node.Leads != (node.Node == leaders[0].NodeName) {
				return false, "leader " + leaders[0].NodeName + ", status: " + out.Stdout
			}
		}
		return len(status.Nodes) == len(nodes), out.Stdout
	})
	return chosen
}

func names(nodes []*labs.Node) (all string) {
	for _, node := range nodes {
		all += " " + node.NodeName
	}
	return all
}
