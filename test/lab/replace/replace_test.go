//go:build linux

package replace

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
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
	for _, layout := range replaced {
		t.Run(layout, func(t *testing.T) { replaceAndRestore(t, exclusive(t, layout)) })
	}
}
