//go:build linux && cases

package replace

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
)

// The node agent's settings name the configuration, so that it lasts when the agent rewrites the
// manifest, which it does when it starts: status reports that, and replace repairs it. restore
// leaves an edited manifest alone unless it is forced.
func TestSettingsAndRewritesOfTheNodeAgent(t *testing.T) {
	const settings = "/etc/pf9/kube.env"
	n := exclusive(t, lab.LayoutPMK)
	image := n.Image(t, "timestamp")
	const env = "export ROLE=\"master\"\nexport SCHEDULER_FLAGS=\"--feature-gates=\"\nexport RUNTIME=\"containerd\"\n"
	n.Shell(t, "cat >"+settings+" <<'END'\n"+env+"END")
	t.Cleanup(func() { n.Shell(t, "rm "+settings) })
	n.replace(t, "--preset", "binpack").OK(t)
	flags := string(n.read(t, settings))
	if !strings.Contains(flags, `SCHEDULER_FLAGS="--feature-gates=,--config=/srv/kubernetes/configs/pmk-sched-`) ||
		!strings.Contains(flags, "export RUNTIME=\"containerd\"\n") {
		t.Errorf("the node agent's settings do not name the configuration:\n%s", flags)
	}
	first := n.read(t, n.manifest)
	n.replace(t, "--preset", "spread", "--image", image).OK(t)
	if bytes.Equal(first, n.read(t, n.manifest)) {
		t.Error("another configuration changed nothing")
	}
	n.PMKSched(t, "verify", "--default").OK(t)

	n.Shell(t, "cat >/etc/pf9/kube.d/master.yaml <<'END'\n"+string(n.original)+"END")
	n.PMKSched(t, "status").Fails(t, 3, "[node-files-drift]", "node agent", "-    image: "+image, "+    image: ",
		"pmk-sched.io/replacement", "replace")
	n.replace(t, "--preset", "spread", "--image", image).OK(t)
	n.PMKSched(t, "status").OK(t)

	n.Shell(t, "sed -i 's/--v=2/--v=3/' /etc/pf9/kube.d/master.yaml")
	n.PMKSched(t, "status").Fails(t, 3, "[node-files-drift]", "edited", "--v=3")
	n.PMKSched(t, "restore", "--yes").Fails(t, 1, "edited", "--v=3", "--force")
	n.PMKSched(t, "restore", "--yes", "--force").OK(t)
	n.isOriginal(t)
	if got := string(n.read(t, settings)); got != env {
		t.Errorf("the node agent's settings are not the original ones:\n%s", got)
	}
}

func TestPlanForAllNodesShowsEachCommandAndChangesNothing(t *testing.T) {
	n := unchanged(t, labs.Shared(t, lab.LayoutKubeadm), manifests[lab.LayoutKubeadm])
	image := n.Image(t, "timestamp")
	n.PMKSched(t, "replace", "--image", image, "--all-nodes", "-o", "json").OK(t).
		Prints(t, `"done": false`, " replace --yes --image "+image+" --node "+n.NodeName)
	if got := n.read(t, n.manifest); !bytes.Equal(got, n.original) {
		t.Error("a plan changed the manifest")
	}
}
