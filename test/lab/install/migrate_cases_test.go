//go:build linux && cases

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestCorrectedManifestOfTheArticleBecomesAScheduler(t *testing.T) {
	migratesArticle(t, "manifest.yaml")
}

// handmade returns the article's manifest as somebody has repaired it, who got it to run: for this
// release, with an image, the node's kubeconfig, and a toleration for the master's taint.
func handmade(t *testing.T, n *labs.Node, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run.Root(), "test/testdata/article/manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(text)
	cut := func(from, to, with string) {
		start := strings.Index(manifest, from)
		end := strings.Index(manifest[max(start, 0):], to)
		if start < 0 || end < 0 {
			t.Fatalf("the manifest lacks %q or %q", from, to)
		}
		manifest = manifest[:start] + with + manifest[start+end:]
	}
	kubeconfig := n.Shell(t, "cat /etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml")
	cut("    apiVersion: v1\n    kind: Config", "---\n",
		"    "+strings.ReplaceAll(strings.TrimSpace(kubeconfig), "\n", "\n    ")+"\n")
	cut("    healthzBindAddress", "---\n", "")
	cut("        disabled:", "        enabled:", "")
	return strings.NewReplacer(
		"        - --scheduler-name=my-scheduler\n", "", // 1.24 does not have it
		"v1beta1", "v1beta3", "NodeResourcesLeastAllocated", "NodeResourcesFit", "my-scheduler", name,
		"<repo-url>/<path or name>:<version>", n.Image(t), "component: scheduler", "component: "+name,
		"      hostNetwork: true", "      hostNetwork: true\n      tolerations: [{operator: Exists}]",
	).Replace(manifest)
}

// A running scheduler that was set up by hand is taken over and given back. No pod waits much
// longer than for a restart of it.
func TestSchedulerThatRunsIsTakenOverAndGivenBack(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	manifest := handmade(t, n, name)
	remove := func() {
		n.Exec(t, "sh", "-c", "kubectl delete --ignore-not-found --wait -f - <<'EOF'\n"+manifest+"EOF")
	}
	n.Apply(t, manifest)
	t.Cleanup(remove)
	n.Kubectl(t, "rollout", "status", "-n", "kube-system", "deployment/"+name, "--timeout=120s")
	waits := map[string]time.Duration{}
	during := func(what string, do func()) {
		ctx, cancel := context.WithCancel(t.Context())
		longest := n.LongestWait(ctx, t, name)
		do()
		cancel()
		waits[what] = <-longest
	}
	during("restart", func() {
		n.Kubectl(t, "delete", "pods", "-n", "kube-system", "-l", "component="+name)
		n.Kubectl(t, "rollout", "status", "-n", "kube-system", "deployment/"+name, "--timeout=120s")
	})
	backup := filepath.Join(t.TempDir(), "before.yaml")
	during("take over", func() {
		args := []string{"migrate", "--live", name, "--apply", "--yes", "--backup", backup}
		n.PMKSched(t, append(args, labs.Stable("1s")...)...).Prints(t, "is deployed", "and schedules")
	})
	if left := n.Kubectl(t, "get", "configmaps,clusterrolebindings", "-n", "kube-system", "-o", "name"); strings.Contains(left,
		"kubeconfig-for-"+name) || strings.Contains(left, name+"-as-kube-scheduler") {
		t.Errorf("objects of the former scheduler are left:\n%s", left)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	during("give back", func() {
		n.PMKSched(t, "migrate", "--back", "-f", backup, "--yes").Prints(t, "runs again")
	})
	n.LeftNothing(t, name)
	t.Logf("longest waits of pods: %v", waits)
}

// A take-over that fails leaves the scheduler that ran before.
func TestTakeOverThatFailsIsUndone(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	manifest := handmade(t, n, name)
	t.Cleanup(func() {
		n.Exec(t, "sh", "-c", "kubectl delete --ignore-not-found --wait -f - <<'EOF'\n"+manifest+"EOF")
	})
	n.Apply(t, strings.ReplaceAll(manifest, "- --v=2", "- --v=2\n        - --no-such-flag=1"))
	backup := filepath.Join(t.TempDir(), "before.yaml")
	n.PMKSched(t, "migrate", "--live", name, "--apply", "--yes", "--backup", backup).
		Fails(t, 1, "no-such-flag", "undo stop the former scheduler")
	n.Kubectl(t, "get", "-n", "kube-system", "deployment/"+name, "configmap/kubeconfig-for-"+name, "configmap/"+name+"-config",
		"serviceaccount/"+name)
	n.LeftNothing(t, name)
}
