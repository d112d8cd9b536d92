//go:build linux && labs

package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// After an upgrade of the cluster detect reports the schedulers of the former release, and the
// command that it prints upgrades them, with the plugin that only a flag of build named.
func TestClusterThatIsUpgradedUnderAScheduler(t *testing.T) {
	from, to := subject{release: "v1.24.3", layout: "kubeadm", api: "v1beta3"}, subject{release: "v1.25.4",
		layout: "kubeadm", api: "v1"}
	n := up(t, from)
	n.PMKSched(t, "build", "--busybox", "/bin/busybox", "--tag", n.image(), "--load", "containerd", "--with",
		"builtin:timestamp").OK(t)
	n.PMKSched(t, "deploy", "--name", "my-scheduler", "--image", n.image(), "--preset", "binpack").OK(t)
	if got := n.deployed(t); got.Release != from.release || got.Due != "" || got.Command != "" {
		t.Errorf("before the upgrade: %+v", got)
	}
	account := n.Kubectl(t, "get", "serviceaccount", "-n", "kube-system", "my-scheduler", "-o", "jsonpath={.metadata.uid}")

	run.PMKLab(t, "upgrade", "--name", n.Name, "--branch", to.release).OK(t)
	n.subject = to
	if got := n.Kubectl(t, "get", "serviceaccount", "-n", "kube-system", "my-scheduler", "-o",
		"jsonpath={.metadata.uid}"); got != account {
		t.Error("the upgrade lost the lab's data")
	}
	left := n.deployed(t)
	if left.Release != from.release || left.Due != to.release || left.Image != from.image() {
		t.Errorf("after the upgrade: %+v", left)
	}
	printed := n.PMKSched(t, "detect").OK(t).Stdout
	for _, text := range []string{"is " + from.release + ", the API server is " + to.release, left.Command} {
		if !strings.Contains(printed, text) {
			t.Errorf("the output lacks %q:\n%s", text, printed)
		}
	}

	n.Exec(t, "env", "PATH="+filepath.Dir(run.Program(t))+":"+os.Getenv("PATH"), "sh", "-ec", left.Command+" --yes").OK(t)
	if got := n.deployed(t); got.Release != to.release || got.Due != "" || got.Image != to.image() {
		t.Errorf("after the command: %+v", got)
	}
	n.PMKSched(t, "verify", "--name", "my-scheduler").OK(t)
	n.bindsPods(t)
	config := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l",
		"app.kubernetes.io/instance=my-scheduler,pmk-sched.io/release="+to.release, "-o", "yaml")
	if !strings.Contains(config, "MostAllocated") || !strings.Contains(config, "name: Timestamp") {
		t.Errorf("the preset or the plugin was lost:\n%s", config)
	}
	n.CleanLog(t, "my-scheduler")
	n.detects(t)
	n.Uninstall(t, "my-scheduler")
}

// A replaced default scheduler is behind after an upgrade of the cluster: upgrade --default builds
// its image again, with the plugin and the configuration of before, and replaces it.
func TestReplacedDefaultSchedulerIsUpgraded(t *testing.T) {
	from, to := subject{release: "v1.24.3", layout: "kubeadm", api: "v1beta3"}, subject{release: "v1.25.4",
		layout: "kubeadm", api: "v1"}
	n := up(t, from)
	n.PMKSched(t, "build", "--busybox", "/bin/busybox", "--tag", n.image(), "--load", "containerd", "--with",
		"builtin:timestamp").OK(t)
	n.PMKSched(t, "replace", "--yes", "--image", n.image(), "--preset", "binpack").OK(t)
	n.PMKSched(t, "upgrade", "check").OK(t)
	n.PMKSched(t, "upgrade", "--default", "--yes").OK(t).Prints(t, "is up to date")

	run.PMKLab(t, "upgrade", "--name", n.Name, "--branch", to.release).OK(t)
	n.subject = to
	n.PMKSched(t, "upgrade", "check").Fails(t, 3, n.NodeName, "pmk-sched upgrade --default")
	n.PMKSched(t, "upgrade", "--default", "--yes").OK(t).Prints(t, "is upgraded from "+from.release+" to "+to.release)
	n.PMKSched(t, "upgrade", "check").OK(t)
	n.PMKSched(t, "status").OK(t)
	n.PMKSched(t, "verify", "--default").OK(t).Prints(t, to.image())
	config := n.Shell(t,
		"cat $(grep -o '/[^ ]*pmk-sched-[0-9a-f]*[.]yaml' /etc/kubernetes/manifests/kube-scheduler.yaml | head -1)")
	if !strings.Contains(config, "MostAllocated") || !strings.Contains(config, "name: Timestamp") ||
		!strings.Contains(config, "kubescheduler.config.k8s.io/v1\n") {
		t.Errorf("the preset or the plugin was lost:\n%s", config)
	}
	n.PMKSched(t, "restore", "--yes").OK(t)
}

// deployed returns the only deployed scheduler in the report of detect.
func (n node) deployed(t *testing.T) inspect.DeployedScheduler {
	t.Helper()
	info := run.Decode[inspect.Info](t, n.PMKSched(t, "detect", "-o", "json").OK(t).Stdout)
	if len(info.Scheduler.Deployed) != 1 {
		t.Fatalf("deployed schedulers: %+v", info.Scheduler.Deployed)
	}
	return info.Scheduler.Deployed[0]
}
