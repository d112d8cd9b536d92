//go:build linux

package replace

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// outcome is the part of `replace -o json` that scripts rely on.
type outcome struct {
	Node                    string
	Backup                  string
	Changed                 bool
	SecondsWithoutScheduler float64
}

// stamped makes a Deployment of twenty pods that name no scheduler, and counts the pods that the
// timestamp plugin stamped.
func (n *node) stamped(t testing.TB, name string) (stamped int) {
	t.Helper()
	const replicas = 20
	manifest := fmt.Sprintf(`---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: default}, spec: {replicas: %[3]d, selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {tolerations: [{operator: Exists}], terminationGracePeriodSeconds: 0, containers: [{name: main, image: %[2]q}]}}}}`, name, lab.PauseImage, replicas)
	n.Shell(t, "cat <<'END' | kubectl create -f -\n"+manifest+"\nEND")
	defer n.Kubectl(t, "delete", "deployment", name, "-n", "default", "--wait=false")
	var bound []string
	run.Eventually(t, "all pods are bound", func(context.Context) (bool, string) {
		out := n.Kubectl(t, "get", "pods", "-n", "default", "-l", "app="+name, "-o",
			`jsonpath={range .items[?(@.spec.nodeName)]}{.metadata.name} {.metadata.annotations.Scheduler-Timestamp}{"\n"}{end}`)
		bound = strings.Split(out, "\n")
		return len(bound) == replicas, out
	})
	for _, line := range bound {
		if len(strings.Fields(line)) == 2 {
			stamped++
		}
	}
	return stamped
}

// replaceAndRestore replaces the default scheduler by one with a plugin: every pod is scheduled by
// it, the API server is not touched, and restore writes the original bytes and removes the
// permissions of the plugin. Another replacement at the same time is refused.
func replaceAndRestore(t *testing.T, n *node) {
	t.Helper()
	image := n.Image(t, "timestamp")
	kept := n.keepsAPIServer(t)

	plan := n.PMKSched(t, "replace", "--image", image, "--dry-run").OK(t)
	plan.Prints(t, image)
	if got := n.read(t, n.manifest); !bytes.Equal(got, n.original) {
		t.Error("a dry run changed the manifest")
	}
	args := n.replaceArgs("--image", image, "-o", "json")
	replaced := n.AtStep(t, "back up", func(int) {
		n.PMKSched(t, args...).Fails(t, 1, "another run is in progress")
	}, args...).OK(t)
	got := run.Decode[outcome](t, replaced.Stdout)
	t.Logf("%s %s: %.1f s without a scheduler", n.Layout, n.Release, got.SecondsWithoutScheduler)
	if !got.Changed || got.SecondsWithoutScheduler <= 0 {
		t.Errorf("want a change, and the seconds without a scheduler: %+v", got)
	}
	kept()
	n.PMKSched(t, "verify", "--default", "-o", "json").OK(t).Prints(t, image, `"programs"`)
	if stamped := n.stamped(t, "replaced"); stamped != 20 {
		t.Errorf("the plugin stamped %d of 20 pods", stamped)
	}
	n.PMKSched(t, "status").OK(t)
	n.Kubectl(t, "get", "clusterrole", "default-scheduler-plugins")
	again := run.Decode[outcome](t, n.PMKSched(t, args...).OK(t).Stdout)
	if again.Changed {
		t.Errorf("replacing by the same scheduler changed something: %+v", again)
	}

	n.restore(t)
	if stamped := n.stamped(t, "restored"); stamped != 0 {
		t.Errorf("after restore the plugin stamped %d of 20 pods", stamped)
	}
	if left := n.Kubectl(t, "get", "clusterroles,clusterrolebindings", "-l",
		"app.kubernetes.io/managed-by=pmk-sched,app.kubernetes.io/instance=default-scheduler", "-o", "name"); left != "" {
		t.Errorf("left behind by restore: %s", left)
	}
	n.PMKSched(t, "verify", "--default").Fails(t, 3, "not replaced")
	n.PMKSched(t, "restore", "--yes").OK(t)
}

func TestReplacedSchedulerSchedulesEveryPodAndRestoreWritesTheOriginalBytes(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{lab.LayoutKubeadm, lab.LayoutPMK} {
		t.Run(layout, func(t *testing.T) { replaceAndRestore(t, exclusive(t, layout)) })
	}
}

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
