//go:build linux && labs

package matrix

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// On a control-plane node of every release, the scheduler of that release is built, deployed and
// verified; it is refused nothing, does not disturb the default scheduler, and uninstall leaves
// nothing.
func TestSchedulerOnANodeOfItsRelease(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.release+"/"+s.layout, func(t *testing.T) {
			r := begin(t, s)
			var n node
			r.stage("lab up", func() { n = up(t, s) })
			var found inspect.Info
			r.stage("detect", func() { found = n.detects(t) })
			r.stage("build", func() { n.build(t) })
			before := n.lease(t, "kube-scheduler")
			r.stage("deploy", func() { n.PMKSched(t, "deploy", "--name", "my-scheduler", "--image", s.image()).OK(t) })
			r.stage("again", func() { n.deploysUnchanged(t, "my-scheduler") })
			r.stage("verify", func() { n.PMKSched(t, "verify", "--name", "my-scheduler").OK(t) })
			r.stage("pods", func() { n.bindsPods(t) })
			n.isOfItsRelease(t)
			n.listensWhereItShould(t, found.Scheduler)
			n.leadsItselfOnly(t, before)
			n.CleanLog(t, "my-scheduler")
			r.stage("serviceaccount", func() { n.worksWithAServiceAccount(t) })
			n.standbysDoNotBlock(t)
			r.stage("uninstall", func() { n.Uninstall(t, "my-scheduler") })
		})
	}
}

// detects compares the output of detect with the lab.
func (n node) detects(t *testing.T) inspect.Info {
	t.Helper()
	out := n.PMKSched(t, "detect", "-o", "json").OK(t).Stdout
	got := run.Decode[inspect.Info](t, out)
	for _, f := range []struct{ what, got, want string }{
		{"server.version", got.Server.Version, n.release},
		{"distribution", got.Distribution, n.layout},
		{"layout", got.Layout, n.layout},
		{"source.module", got.Source.Module, "k8s.io/kubernetes@" + n.release},
		{"configuration.apiVersion", got.Configuration.APIVersion, "kubescheduler.config.k8s.io/" + n.api},
		{"controlPlane.labelKey", got.ControlPlane.LabelKey, n.labelKey()},
		{"scheduler.port", fmt.Sprint(got.Scheduler.Port), "10260"},
		{"scheduler.runs", got.Scheduler.Runs, inspect.RunsAsStaticPod},
		{"credentials.kubeconfig", got.Credentials.Kubeconfig, n.kubeconfig()},
		{"credentials.user", got.Credentials.User, "system:kube-scheduler"},
		{"warnings", strings.Join(got.Warnings, "; "), ""},
	} {
		if f.got != f.want {
			t.Errorf("%s: got %q, want %q", f.what, f.got, f.want)
		}
	}
	if plain := got.Scheduler.InsecurePort != 0; plain != (n.minor(t) <= 22) {
		t.Errorf("scheduler.insecurePort is %d", got.Scheduler.InsecurePort)
	}
	if len(got.ControlPlane.Nodes) != 1 {
		t.Fatalf("want one control-plane node: %s", out)
	}
	var taints []string
	for _, taint := range got.ControlPlane.Nodes[0].Taints {
		taints = append(taints, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
	}
	if !slices.Contains(taints, n.taint()) {
		t.Errorf("taints: got %v, want %s among them", taints, n.taint())
	}
	return got
}

// build compiles the scheduler of the release and hands it to the node.
func (n node) build(t *testing.T) {
	t.Helper()
	n.PMKSched(t, "build", "--busybox", "/bin/busybox", "--tag", n.image(), "--load", "containerd").OK(t)
}

// deploysUnchanged runs the same deploy again, which must change no object.
func (n node) deploysUnchanged(t *testing.T, name string, more ...string) {
	t.Helper()
	again := n.PMKSched(t, append([]string{"deploy", "--name", name, "--image", n.image()}, more...)...).OK(t)
	for line := range strings.Lines(again.Stdout) {
		if strings.Contains(line, "/") && !strings.Contains(line, "unchanged") {
			t.Errorf("a second deploy changes something: %s", line)
		}
	}
}

// bindsPods runs five pods that name the deployed scheduler and five that name none: each is bound
// by the right one.
func (n node) bindsPods(t *testing.T) {
	t.Helper()
	for name, scheduler := range map[string]string{"ours": "my-scheduler", "others": ""} {
		n.Apply(t, labs.Pods(name, scheduler, n.image(), 5))
	}
	for name, by := range map[string]string{"ours": "my-scheduler", "others": "default-scheduler"} {
		n.Kubectl(t, "rollout", "status", "deployment/"+name, "--timeout=180s")
		if got := n.ScheduledBy(t, "default", name, 5); got[by] != 5 || len(got) != 1 {
			t.Errorf("the five pods of %s were scheduled by %v, want %s", name, got, by)
		}
	}
	n.Kubectl(t, "delete", "deployment", "ours", "others", "--wait=true")
}

// worksWithAServiceAccount deploys a scheduler with a ServiceAccount.
func (n node) worksWithAServiceAccount(t *testing.T) {
	t.Helper()
	n.PMKSched(t, "deploy", "--name", "second", "--image", n.image(), "--credentials", "serviceaccount").OK(t)
	n.deploysUnchanged(t, "second", "--credentials", "serviceaccount")
	n.PMKSched(t, "verify", "--name", "second").OK(t)
	n.CleanLog(t, "second")
	n.Uninstall(t, "second")
}
