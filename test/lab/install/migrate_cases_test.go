//go:build linux && cases

package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
		"10260", n.Port(t),
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
	left := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-o", "name")
	for _, former := range []string{"configmap/kubeconfig-for-" + name, "configmap/" + name + "-config"} {
		if slices.Contains(strings.Fields(left), former) {
			t.Errorf("%s of the former scheduler is left", former)
		}
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

// What would not start is refused while the former scheduler runs. After Ctrl-C it runs again.
func TestTakeOverThatFailsLeavesTheFormerScheduler(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	manifest := handmade(t, n, name)
	t.Cleanup(func() {
		n.Exec(t, "sh", "-c", "kubectl delete --ignore-not-found --wait -f - <<'EOF'\n"+manifest+"EOF")
	})
	available := func() {
		t.Helper()
		n.Kubectl(t, "rollout", "status", "-n", "kube-system", "deployment/"+name, "--timeout=120s")
		n.Kubectl(t, "get", "-n", "kube-system", "configmap/kubeconfig-for-"+name, "configmap/"+name+"-config",
			"serviceaccount/"+name)
		n.LeftNothing(t, name)
	}
	migrate := []string{"migrate", "--live", name, "--apply", "--yes", "--backup"}
	n.Apply(t, strings.ReplaceAll(manifest, "- --v=2", "- --v=2\n        - --no-such-flag=1"))
	n.PMKSched(t, append(migrate, filepath.Join(t.TempDir(), "refused.yaml"))...).
		Fails(t, 2, "unknown flag: --no-such-flag")
	n.Apply(t, manifest)
	available()
	n.AtStep(t, "stop the former scheduler", labs.Signal(t, syscall.SIGINT),
		append(migrate, filepath.Join(t.TempDir(), "interrupted.yaml"))...).
		Fails(t, 1, "interrupted", "undo stop the former scheduler")
	available()
}
