//go:build labmatrix || releases

package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
)

// On a master of every release the scheduler of that release is built, deployed and proven; it may do all that it wants to,
// stays out of the default scheduler's way, and leaves nothing when it goes.
func TestSchedulerOnAMasterOfItsRelease(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.release+"/"+s.layout, func(t *testing.T) {
			r := begin(t, s)
			var m master
			r.stage("lab up", func() { m = up(t, s) })
			var found cluster.Info
			r.stage("detect", func() { found = m.detects(t) })
			r.stage("build", func() { m.build(t) })
			before := m.lease(t, "kube-scheduler")
			r.stage("deploy", func() { m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", s.image()).ok(t) })
			r.stage("again", func() { m.deploysUnchanged(t, "my-scheduler") })
			r.stage("verify", func() { m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t) })
			r.stage("pods", func() { m.bindsPods(t) })
			m.isOfItsRelease(t)
			m.listensWhereItShould(t, found.Scheduler)
			m.leadsItselfOnly(t, before)
			m.mayDoAllItWants(t, "my-scheduler")
			r.stage("serviceaccount", func() { m.worksWithAServiceAccount(t) })
			m.standbysDoNotBlock(t)
			r.stage("uninstall", func() { m.uninstall(t, "my-scheduler") })
		})
	}
}

// detects has detect look at the master and compares what it says with what the lab is.
func (m master) detects(t *testing.T) cluster.Info {
	t.Helper()
	out := m.pmkSched(t, "detect", "-o", "json").ok(t).stdout
	got := decode[cluster.Info](t, out)
	for _, f := range []struct{ what, got, want string }{
		{"server.version", got.Server.Version, m.release},
		{"distribution", got.Distribution, m.layout},
		{"layout", got.Layout, m.layout},
		{"source.module", got.Source.Module, "k8s.io/kubernetes@" + m.release},
		{"configuration.apiVersion", got.Configuration.APIVersion, "kubescheduler.config.k8s.io/" + m.api},
		{"controlPlane.labelKey", got.ControlPlane.LabelKey, m.labelKey()},
		{"scheduler.port", fmt.Sprint(got.Scheduler.Port), "10260"},
		{"scheduler.runs", got.Scheduler.Runs, cluster.RunsAsStaticPod},
		{"credentials.kubeconfig", got.Credentials.Kubeconfig, m.kubeconfig()},
		{"credentials.user", got.Credentials.User, "system:kube-scheduler"},
		{"warnings", strings.Join(got.Warnings, "; "), ""},
	} {
		if f.got != f.want {
			t.Errorf("%s: got %q, want %q", f.what, f.got, f.want)
		}
	}
	if plain := got.Scheduler.InsecurePort != 0; plain != (m.minor(t) <= 22) {
		t.Errorf("scheduler.insecurePort is %d", got.Scheduler.InsecurePort)
	}
	if len(got.ControlPlane.Nodes) != 1 {
		t.Fatalf("want one control-plane node: %s", out)
	}
	var taints []string
	for _, taint := range got.ControlPlane.Nodes[0].Taints {
		taints = append(taints, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
	}
	if !slices.Contains(taints, m.taint()) {
		t.Errorf("taints: got %v, want %s among them", taints, m.taint())
	}
	return got
}

// build compiles the scheduler of the release and hands it to the node.
func (m master) build(t *testing.T) {
	t.Helper()
	m.pmkSched(t, "build", "--busybox", "/bin/busybox", "--tag", m.image(), "--load", "containerd").ok(t)
}

// deploysUnchanged deploys what is deployed already: nothing may differ.
func (m master) deploysUnchanged(t *testing.T, name string, more ...string) {
	t.Helper()
	again := m.pmkSched(t, append([]string{"deploy", "--name", name, "--image", m.image()}, more...)...).ok(t)
	for line := range strings.Lines(again.stdout) {
		if strings.Contains(line, "/") && !strings.Contains(line, "unchanged") {
			t.Errorf("a second deploy changes something: %s", line)
		}
	}
}

// podsManifest is a Deployment whose pods may run on the master and name the given scheduler; "" names none.
func podsManifest(name, scheduler, image string) string {
	line := ""
	if scheduler != "" {
		line = "schedulerName: " + scheduler
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: 5
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      %[2]s
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: %[3]s, command: [/bin/sleep, "100000"]}]
`, name, line, image)
}

// bindsPods runs five pods that name our scheduler and five that name none: each is bound by the right one.
func (m master) bindsPods(t *testing.T) {
	t.Helper()
	for name, scheduler := range map[string]string{"ours": "my-scheduler", "others": ""} {
		m.kubectl(t, "apply", "-f", write(t, "pods.yaml", podsManifest(name, scheduler, m.image())))
	}
	for name, by := range map[string]string{"ours": "my-scheduler", "others": "default-scheduler"} {
		m.kubectl(t, "rollout", "status", "deployment/"+name, "--timeout=180s")
		if got := m.scheduledBy(t, name); got[by] != 5 || len(got) != 1 {
			t.Errorf("the five pods of %s were scheduled by %v, want %s", name, got, by)
		}
	}
	m.kubectl(t, "delete", "deployment", "ours", "others", "--wait=true")
}

// scheduledBy counts, by the scheduler that reported it, the Scheduled events of a Deployment's pods.
func (m master) scheduledBy(t *testing.T, deployment string) map[string]int {
	t.Helper()
	events := m.kubectl(t, "get", "events", "-n", "default", "--field-selector", "reason=Scheduled",
		"-o", `jsonpath={range .items[*]}{.involvedObject.name} {.source.component} {.reportingComponent}{"\n"}{end}`)
	count := map[string]int{}
	for line := range strings.Lines(events) {
		// Some releases fill in both places, some one of them.
		if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], deployment+"-") {
			count[words[1]]++
		}
	}
	return count
}

// refused are the lines that a scheduler writes about what it may not read: it would wait for that in silence.
var refused = regexp.MustCompile(`(?i)forbidden|failed to (list|watch)`)

// mayDoAllItWants fails the test if the log of a deployed scheduler tells of anything that it may not or cannot read.
func (m master) mayDoAllItWants(t *testing.T, name string) {
	t.Helper()
	pods := "app.kubernetes.io/instance=" + name
	logs := m.kubectl(t, "logs", "-n", "kube-system", "-l", pods, "--tail=-1")
	if !strings.Contains(logs, "Starting") && !strings.Contains(logs, "Serving securely") {
		t.Errorf("the log of %s is not one of a scheduler:\n%s", name, logs)
	}
	for line := range strings.Lines(logs) {
		if refused.MatchString(line) {
			t.Errorf("%s may not do all that it wants to: %s", name, line)
		}
	}
	restarts := m.kubectl(t, "get", "pods", "-n", "kube-system", "-l", pods, "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if strings.Trim(restarts, "0 ") != "" {
		t.Errorf("%s was restarted: %s", name, restarts)
	}
}

// worksWithAServiceAccount deploys a scheduler whose rights are all granted to an account of its own.
func (m master) worksWithAServiceAccount(t *testing.T) {
	t.Helper()
	m.pmkSched(t, "deploy", "--name", "second", "--image", m.image(), "--credentials", "serviceaccount").ok(t)
	m.deploysUnchanged(t, "second", "--credentials", "serviceaccount")
	m.pmkSched(t, "verify", "--name", "second").ok(t)
	m.mayDoAllItWants(t, "second")
	m.uninstall(t, "second")
}

// uninstall takes a scheduler away and fails the test if anything of it stays.
func (m master) uninstall(t *testing.T, name string) {
	t.Helper()
	m.pmkSched(t, "uninstall", "--name", name, "--yes").ok(t)
	left := m.kubectl(t, "get", "deployments,pods,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases",
		"-A", "-l", "app.kubernetes.io/instance="+name, "-o", "name")
	if left != "" {
		t.Errorf("left behind by uninstall: %s", left)
	}
}
