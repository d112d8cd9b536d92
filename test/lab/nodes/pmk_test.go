//go:build linux && labs

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const pmkManifest = "/etc/pf9/kube.d/master.yaml"

// On PMK each component uses the API server of its node, https://localhost:443, clients use a
// virtual address, and the node agent writes the manifest again when it starts. The releases come
// from PMK's public node agent and from its article.
func TestSchedulersOnThreeControlPlaneNodesOfPMK(t *testing.T) {
	for _, release := range []string{"v1.21.3", labs.Release} {
		t.Run(release, func(t *testing.T) { onThreeOfPMK(t, release) })
	}
}

func onThreeOfPMK(t *testing.T, release string) {
	nodes := three(t, release, lab.LayoutPMK)
	deployed(t, nodes, "node-role.kubernetes.io/master")
	if got := nodes[0].Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o",
		"jsonpath={.items[*].data.*}"); !strings.Contains(got, "https://localhost:443") {
		t.Errorf("the replicas do not use the API servers of their nodes:\n%s", got)
	}
	for i, node := range nodes {
		if !t.Run("without node "+node.NodeName, func(t *testing.T) { survives(t, node, nodes[(i+1)%len(nodes)]) }) {
			t.FailNow() // the cluster is not whole
		}
	}
	for _, loss := range []struct {
		name       string
		lose, undo func(*lab.Lab, context.Context, string) error
	}{
		{"is stopped", (*lab.Lab).StopNode, (*lab.Lab).StartNode},
		{"is cut from the network", (*lab.Lab).CutNode, (*lab.Lab).HealNode},
	} {
		if !t.Run("the virtual address moves when its node "+loss.name,
			func(t *testing.T) { moves(t, nodes, loss.lose, loss.undo) }) {
			t.FailNow()
		}
	}
	t.Run("replaced node by node", func(t *testing.T) { replaced(t, nodes, pmkManifest) })
	t.Run("rewritten by the node agent", func(t *testing.T) { rewritten(t, nodes[2], nodes[0]) })
	t.Run("kept by the node agent", func(t *testing.T) { kept(t, nodes[1], nodes[0]) })
	uninstalled(t, nodes[0])
}

// moves loses the node that holds the virtual address: another one gets it, an API server answers
// there, and pods of the deployed scheduler are bound. When the node is back, one node holds the
// address.
func moves(t *testing.T, nodes []*labs.Node, lose, undo func(*lab.Lab, context.Context, string) error) {
	l, before := nodes[0].Lab, holder(t, nodes)
	rest := slices.DeleteFunc(slices.Clone(nodes), func(n *labs.Node) bool { return n.NodeName == before })
	if err := lose(l, t.Context(), before); err != nil {
		t.Fatal(err)
	}
	holder(t, rest)
	answers := func(context.Context) (bool, string) {
		version, err := rest[0].Kube.Discovery().ServerVersion()
		return err == nil, fmt.Sprint(version, err)
	}
	run.Eventually(t, "an API server answers at the virtual address", answers)
	bound(t, rest[0], name)
	if err := undo(l, t.Context(), before); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		run.Eventually(t, "the API server of "+n.NodeName+" is ready", func(context.Context) (bool, string) {
			r := n.Exec(t, "kubectl", "get", "--raw=/readyz")
			return r.Code == 0, r.String()
		})
	}
	holder(t, nodes)
	run.Eventually(t, "an API server answers at the virtual address", answers)
	run.Eventually(t, "all replicas are ready", func(context.Context) (bool, string) {
		r := rest[0].PMKSched(t, "status")
		return r.Code == 0 && strings.Contains(r.Stdout, "3/3"), r.String()
	})
}

// holder waits until one of the nodes holds the virtual address, and returns its name.
func holder(t *testing.T, nodes []*labs.Node) (name string) {
	t.Helper()
	server, err := url.Parse(nodes[0].Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "one node has the address "+server.Hostname(), func(context.Context) (bool, string) {
		var holders []string
		for _, n := range nodes {
			if r := n.Exec(t, "ip", "-o", "address", "show", "dev", "eth0"); strings.Contains(r.Stdout,
				" "+server.Hostname()+"/") {
				holders = append(holders, n.NodeName)
			}
		}
		if len(holders) == 1 {
			name = holders[0]
		}
		return len(holders) == 1, strings.Join(holders, " ")
	})
	return name
}

// restarted stops a node and starts it again, with its node agent.
func restarted(t *testing.T, n *labs.Node) {
	t.Helper()
	if err := n.Lab.StopNode(t.Context(), n.NodeName); err != nil {
		t.Fatal(err)
	}
	if err := n.Lab.StartNode(t.Context(), n.NodeName); err != nil {
		t.Fatal(err)
	}
}

// rewritten replaces the default scheduler of a node whose agent has no settings that keep it: the
// agent restores the manifest, which status reports and another replacement repairs.
func rewritten(t *testing.T, n, other *labs.Node) {
	original := read(t, n, pmkManifest)
	replace(t, n)
	restarted(t, n)
	if !bytes.Equal(read(t, n, pmkManifest), original) {
		t.Error("the node agent did not write its manifest again")
	}
	n.PMKSched(t, "status").Fails(t, 3, "node agent")
	replace(t, n)
	run.Eventually(t, "status finds no drift", func(context.Context) (bool, string) {
		r := n.PMKSched(t, "status")
		return r.Code == 0, r.String()
	})
	bound(t, other, "default-scheduler")
	n.PMKSched(t, "restore", "--yes").OK(t)
	if !bytes.Equal(read(t, n, pmkManifest), original) {
		t.Error("the manifest is not the original one")
	}
}

// kept replaces the configuration of a node whose agent has settings: the agent writes a manifest
// that names the configuration.
func kept(t *testing.T, n, other *labs.Node) {
	const settings, env = "/etc/pf9/kube.env", "export ROLE=\"master\"\nexport SCHEDULER_FLAGS=\"\"\n"
	n.Shell(t, "cat >"+settings+" <<'END'\n"+env+"END")
	t.Cleanup(func() { n.Shell(t, "rm "+settings) })
	original := read(t, n, pmkManifest)
	replace(t, n)
	restarted(t, n)
	if text := string(read(t, n, pmkManifest)); !strings.Contains(text, "--config=/srv/kubernetes/configs/pmk-sched-") ||
		strings.Contains(text, "pmk-sched.io/replacement") {
		t.Errorf("the node agent did not write the manifest with the configuration:\n%s", text)
	}
	run.Eventually(t, "status finds no drift", func(context.Context) (bool, string) {
		r := n.PMKSched(t, "status")
		return r.Code == 0, r.String()
	})
	bound(t, other, "default-scheduler")
	n.PMKSched(t, "restore", "--yes", "--force").OK(t)
	if got := string(read(t, n, settings)); got != env {
		t.Errorf("the node agent's settings are not the original ones:\n%s", got)
	}
	if !bytes.Equal(read(t, n, pmkManifest), original) {
		t.Error("the manifest is not the original one")
	}
}
