package replace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/lab"
)

var (
	kubeadm = shape{lab.LayoutKubeadm, "v1.24.3"}
	pmk     = shape{lab.LayoutPMK, "v1.24.3"}
)

// outcome is the part of `replace -o json` that scripts rely on.
type outcome struct {
	Node                    string
	Backup                  string
	Changed                 bool
	SecondsWithoutScheduler float64
}

// stamped counts the pods of a Deployment of twenty that name no scheduler, and those that the timestamp plugin stamped.
func (m *master) stamped(t *testing.T, name string) (all, stamped int) {
	t.Helper()
	manifest := fmt.Sprintf(`---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: default}, spec: {replicas: 20, selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {tolerations: [{operator: Exists}], terminationGracePeriodSeconds: 0, containers: [{name: main, image: %[2]q}]}}}}`, name, lab.PauseImage)
	m.sh(t, "cat <<'END' | kubectl create -f -\n"+manifest+"\nEND")
	defer m.kubectl(t, "delete", "deployment", name, "-n", "default", "--wait=false")
	bound := func() []string {
		out := m.kubectl(t, "get", "pods", "-n", "default", "-l", "app="+name, "-o", `jsonpath={range .items[?(@.spec.nodeName)]}{.metadata.name} {.metadata.annotations.Scheduler-Timestamp}{"\n"}{end}`)
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	eventually(t, "twenty pods are bound", func() bool { return len(bound()) == 20 })
	for _, line := range bound() {
		if len(strings.Fields(line)) == 2 {
			stamped++
		}
		all++
	}
	return all, stamped
}

// A scheduler with a plugin takes the place of the default one: every pod gets it; the API server is not touched; restore brings back
// the same bytes, and what the plugin was granted goes.
func replaceAndRestore(t *testing.T, s shape) *master {
	m := lend(t, s)
	image := m.ours(t, "timestamp")
	server := m.apiServer(t)

	replaced := m.pmkSched(t, "replace", "--image", image, "--yes", "-o", "json").ok(t)
	got := decode[outcome](t, replaced.stdout)
	t.Logf("%s: %.1f s without any scheduler", s, got.SecondsWithoutScheduler)
	if !got.Changed || got.SecondsWithoutScheduler <= 0 {
		t.Errorf("want a change, and the seconds without a scheduler told: %+v", got)
	}
	if now := m.apiServer(t); now != server {
		t.Errorf("the API server was restarted: it was container %s and is %s", server, now)
	}
	verified := m.pmkSched(t, "verify", "--default", "-o", "json").ok(t)
	if !strings.Contains(verified.stdout, image) || !strings.Contains(verified.stdout, `"programs"`) {
		t.Errorf("the proof names neither image nor program: %s", verified)
	}
	if all, stamped := m.stamped(t, "replaced"); all != 20 || stamped != 20 {
		t.Errorf("%d of %d pods were stamped by the plugin", stamped, all)
	}
	m.pmkSched(t, "status").ok(t)
	m.kubectl(t, "get", "clusterrole", "default-scheduler-plugins")
	again := decode[outcome](t, m.pmkSched(t, "replace", "--image", image, "--yes", "--steady", "1s", "-o", "json").ok(t).stdout)
	if again.Changed {
		t.Errorf("replacing with the same changed something: %+v", again)
	}

	m.pmkSched(t, "restore", "--yes").ok(t)
	m.isOriginal(t)
	if all, stamped := m.stamped(t, "restored"); all != 20 || stamped != 0 {
		t.Errorf("after restore %d of %d pods were stamped by the plugin", stamped, all)
	}
	if left := m.kubectl(t, "get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/managed-by=pmk-sched", "-o", "name"); left != "" {
		t.Errorf("left behind by restore: %s", left)
	}
	m.pmkSched(t, "verify", "--default").fails(t, 3, "not replaced")
	m.pmkSched(t, "restore", "--yes").ok(t)
	return m
}

func TestReplacedSchedulerTakesEveryPodAndRestoreBringsBackTheSameBytes(t *testing.T) {
	for _, s := range []shape{kubeadm, pmk} {
		t.Run(s.String(), func(t *testing.T) { replaceAndRestore(t, s) })
	}
}

// Only the configuration changes: the pod is restarted with it. On PMK the node agent's settings name it, so that it lasts when the
// agent writes the manifest anew.
func TestConfigurationAloneIsReplaced(t *testing.T) {
	m := lend(t, pmk)
	const env = "export ROLE=\"master\"\nexport SCHEDULER_FLAGS=\"--feature-gates=\"\nexport RUNTIME=\"containerd\"\n"
	m.sh(t, "cat >/etc/pf9/kube.env <<'END'\n"+env+"END")
	m.pmkSched(t, "replace", "--preset", "binpack", "--yes", "--steady", "1s").ok(t)
	flags := string(m.read(t, "/etc/pf9/kube.env"))
	if !strings.Contains(flags, `SCHEDULER_FLAGS="--feature-gates=,--config=/srv/kubernetes/configs/pmk-sched-`) || !strings.Contains(flags, "export RUNTIME=\"containerd\"\n") {
		t.Errorf("the node agent's settings do not name the configuration:\n%s", flags)
	}
	first := m.read(t, m.manifest())
	m.pmkSched(t, "replace", "--preset", "spread", "--yes", "--steady", "1s").ok(t)
	if bytes.Equal(first, m.read(t, m.manifest())) {
		t.Error("another configuration changed nothing")
	}
	m.pmkSched(t, "verify", "--default").ok(t)
	m.pmkSched(t, "restore", "--yes").ok(t)
	if got := string(m.read(t, "/etc/pf9/kube.env")); got != env {
		t.Errorf("the node agent's settings are not what they were:\n%s", got)
	}
	m.sh(t, "rm /etc/pf9/kube.env")
	m.isOriginal(t)
}

// The node agent writes its manifest anew at its start. status says so, replacing again mends it; restore leaves alone what is not ours.
func TestNodeAgentsRewriteIsToldAndMended(t *testing.T) {
	m := lend(t, pmk)
	image := m.ours(t)
	agentWrites := func() {
		m.sh(t, "cat >/etc/pf9/kube.d/master.yaml <<'END'\n"+string(m.original)+"END")
	}
	m.pmkSched(t, "replace", "--image", image, "--yes", "--steady", "1s").ok(t)
	agentWrites()
	m.pmkSched(t, "status").fails(t, 3, "rewritten", "node agent", "-       image: "[:1], "pmk-sched.io/replacement", "replace")
	m.pmkSched(t, "replace", "--image", image, "--yes", "--steady", "1s").ok(t)
	m.pmkSched(t, "status").ok(t)
	m.pmkSched(t, "verify", "--default").ok(t)

	m.sh(t, "sed -i 's/--v=2/--v=3/' /etc/pf9/kube.d/master.yaml")
	m.pmkSched(t, "status").fails(t, 3, "edited", "--v=3")
	m.pmkSched(t, "restore", "--yes").fails(t, 1, "edited", "--v=3", "--force")
	m.pmkSched(t, "restore", "--yes", "--force").ok(t)
	m.isOriginal(t)
}

func TestPlanForAllNodesSaysWhatIsDone(t *testing.T) {
	m := lend(t, kubeadm)
	image := m.ours(t)
	plan := m.pmkSched(t, "replace", "--image", image, "--all-nodes", "-o", "json").ok(t).stdout
	for _, text := range []string{`"done": false`, "pmk-sched replace --yes --image " + image + " --node " + m.name} {
		if !strings.Contains(plan, text) {
			t.Errorf("the plan lacks %q: %s", text, plan)
		}
	}
	if got := m.read(t, m.manifest()); !bytes.Equal(got, m.original) {
		t.Error("a plan changed the manifest")
	}
}
