//go:build labmatrix

package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
)

// A cluster that was upgraded under a deployed scheduler: detect tells, and the command that it gives mends it, with the plugin that only
// a flag of build named.
func TestClusterThatIsUpgradedUnderAScheduler(t *testing.T) {
	from, to := subject{release: "v1.24.3", layout: "kubeadm", api: "v1beta3"}, subject{release: "v1.25.4", layout: "kubeadm", api: "v1"}
	m := up(t, from)
	m.pmkSched(t, "build", "--busybox", "/bin/busybox", "--tag", m.image(), "--load", "containerd", "--with", "builtin:timestamp").ok(t)
	m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", m.image(), "--preset", "binpack").ok(t)
	if got := m.deployed(t); got.Release != from.release || got.Due != "" || got.Command != "" {
		t.Errorf("before the upgrade: %+v", got)
	}
	account := m.kubectl(t, "get", "serviceaccount", "-n", "kube-system", "my-scheduler", "-o", "jsonpath={.metadata.uid}")

	run(t, command(t, "lab", "upgrade", "--name", labName, "--branch", to.release)).ok(t)
	m.subject = to
	if got := m.kubectl(t, "get", "serviceaccount", "-n", "kube-system", "my-scheduler", "-o", "jsonpath={.metadata.uid}"); got != account {
		t.Error("the lab's data is not what it was")
	}
	left := m.deployed(t)
	if left.Release != from.release || left.Due != to.release || left.Image != from.image() {
		t.Errorf("after the upgrade: %+v", left)
	}
	told := m.pmkSched(t, "detect").ok(t).stdout
	for _, text := range []string{"is of " + from.release, "the API server of " + to.release, left.Command} {
		if !strings.Contains(told, text) {
			t.Errorf("the person is not told %q:\n%s", text, told)
		}
	}

	m.exec(t, "env", "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "sh", "-ec", left.Command).ok(t)
	if got := m.deployed(t); got.Release != to.release || got.Due != "" || got.Image != to.image() {
		t.Errorf("after the command: %+v", got)
	}
	m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
	m.bindsPods(t)
	config := m.kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance=my-scheduler,pmk-sched.io/release="+to.release, "-o", "yaml")
	if !strings.Contains(config, "MostAllocated") || !strings.Contains(config, "name: Timestamp") {
		t.Errorf("the preset or the plugin was lost:\n%s", config)
	}
	m.mayDoAllItWants(t, "my-scheduler")
	m.detects(t)
	m.uninstall(t, "my-scheduler")
}

// deployed is what detect says of the one scheduler that is deployed.
func (m master) deployed(t *testing.T) cluster.DeployedScheduler {
	t.Helper()
	info := decode[cluster.Info](t, m.pmkSched(t, "detect", "-o", "json").ok(t).stdout)
	if len(info.Scheduler.Deployed) != 1 {
		t.Fatalf("deployed schedulers: %+v", info.Scheduler.Deployed)
	}
	return info.Scheduler.Deployed[0]
}
