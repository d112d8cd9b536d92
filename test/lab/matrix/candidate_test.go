//go:build labmatrix

package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Where a cluster coordinates the election of its leaders, the default scheduler is a candidate for its lease and ours is none:
// a scheduler with the feature on registers for that lease whatever its configuration says.
func TestSecondSchedulerIsNoCandidateForTheDefaultOnesLease(t *testing.T) {
	m := up(t, subject{release: "v1.34.2", layout: "kubeadm", api: "v1"})
	const gate = "--feature-gates=CoordinatedLeaderElection=true"
	m.addFlags(t, "kube-apiserver", gate, "--runtime-config=coordination.k8s.io/v1beta1=true")
	m.addFlags(t, "kube-scheduler", gate)
	eventually(t, "the default scheduler becomes a candidate", func() bool {
		return strings.Contains(m.candidates(t), "kube-scheduler")
	})
	m.build(t)
	m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", m.image()).ok(t)
	m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)
	if list := m.candidates(t); strings.Contains(list, "my-scheduler") || strings.Count(list, "kube-scheduler") != 1 {
		t.Errorf("the candidates, each with its lease:\n%s", list)
	}
	if holder := m.lease(t, "kube-scheduler").Spec.HolderIdentity; !strings.HasPrefix(holder, labName+"_") {
		t.Errorf("the default scheduler's lease is held by %q", holder)
	}
	m.mayDoAllItWants(t, "my-scheduler")
	m.uninstall(t, "my-scheduler")
}

// candidates lists the candidates of every lease; "" while the API server does not know of any.
func (m master) candidates(t *testing.T) string {
	t.Helper()
	return m.exec(t, "kubectl", "get", "leasecandidates", "-n", "kube-system",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.leaseName}{"\n"}{end}`).stdout
}

// addFlags gives a component of the control plane further flags, in the manifest of its static pod, as an administrator would.
func (m master) addFlags(t *testing.T, component string, flags ...string) {
	t.Helper()
	file := filepath.Join(os.Getenv("PMK_SCHED_LAB_DIR"), labName, "root/etc/kubernetes/manifests", component+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := "    - " + component + "\n"
	if strings.Count(string(text), line) != 1 {
		t.Fatalf("%s has another form than expected:\n%s", file, text)
	}
	changed := strings.Replace(string(text), line, line+"    - "+strings.Join(flags, "\n    - ")+"\n", 1)
	next := filepath.Join(os.Getenv("PMK_SCHED_LAB_DIR"), labName, component+".yaml")
	if err := os.WriteFile(next, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	// The kubelet reads the folder at any time: the file changes at once.
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until the condition holds or three minutes have passed.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting: %s", what)
		}
		time.Sleep(time.Second)
	}
}
