//go:build linux && labs

package lifecycle

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// blocking describes the scheduler with a plugin that lets no node pass: it becomes stable, and
// binds no pod.
const blocking = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: my-scheduler}
spec:
  source: {plugins: [{builtin: blockall}]}
  image: {repository: localhost/blocking}
`

// upgradeStep is an upgrade of a cluster, and whether its second scheduler is upgraded after it.
type upgradeStep struct {
	release string
	upgrade bool
}

// A second scheduler with the article's configuration and a plugin, and a replaced default
// scheduler, survive each upgrade of a cluster of kubeadm. After each, status reports both, and the
// commands that it prints repair them. An upgrade that cannot work is rolled back.
func TestSchedulersAreUpgradedAfterTheirCluster(t *testing.T) {
	for _, chain := range []struct {
		from  string
		steps []upgradeStep
	}{
		{labs.Release, []upgradeStep{
			{"v1.25.4", true}, {"v1.26.3", false}, {"v1.27.3", false}, {"v1.28.15", true}, {"v1.29.2", true}}},
		{"v1.33.13", []upgradeStep{{"v1.34.2", true}}}, // etcd from 3.5 to 3.6
	} {
		t.Run(chain.from, func(t *testing.T) { upgradesWithItsCluster(t, chain.from, chain.steps) })
	}
}

func upgradesWithItsCluster(t *testing.T, from string, steps []upgradeStep) {
	n := labs.Start(t, labs.Options{Release: from, Layout: lab.LayoutKubeadm, Kubelets: 1})
	image := "localhost/my-scheduler:" + from
	n.PMKSched(t, "build", "--busybox", "/bin/busybox", "--tag", image, "--load", "containerd", "--with",
		"builtin:timestamp").OK(t)
	n.PMKSched(t, "deploy", "--name", "my-scheduler", "--image", image, "--config",
		filepath.Join(run.Root(), "test/testdata/article/my-scheduler.yaml")).OK(t)
	n.PMKSched(t, "replace", "--yes", "--preset", "binpack").OK(t)
	n.PMKSched(t, "upgrade", "check").OK(t).Prints(t, "up to date: "+from)
	n.PMKSched(t, "upgrade", "--name", "my-scheduler").OK(t).Prints(t, "scheduler my-scheduler is up to date")
	n.PMKSched(t, "upgrade", "--default", "--yes").OK(t).Prints(t, "is up to date")

	first := from
	for _, step := range steps {
		run.PMKLab(t, "upgrade", "--name", n.Name, "--branch", step.release).OK(t)
		n.AwaitReady(t)
		n.PMKSched(t, "status").Fails(t, 3, "it is "+from+", the API server is "+step.release,
			"`pmk-sched upgrade --name my-scheduler`",
			"drift: files of the default scheduler of node "+n.NodeName, "`pmk-sched upgrade --default`")
		due := checkDue(t, n)
		if due.Release != from || due.Target != step.release || due.Blocked != "" ||
			due.NewImage != "localhost/my-scheduler:"+step.release || !slices.Equal(due.Plugins, []string{"Timestamp"}) {
			t.Errorf("after the upgrade of the cluster to %s: %+v", step.release, due)
		}
		n.PMKSched(t, "upgrade", "--default", "--yes").OK(t).Prints(t, "is upgraded")
		n.PMKSched(t, "verify", "--default").OK(t)
		if config := n.Shell(t,
			"cat $(grep -o '/[^ ]*pmk-sched-[0-9a-f]*[.]yaml' /etc/kubernetes/manifests/kube-scheduler.yaml | head -1)"); !strings.Contains(config, "MostAllocated") {
			t.Errorf("%s: the default scheduler's configuration lost the preset:\n%s", step.release, config)
		}
		if !step.upgrade {
			n.PMKSched(t, "status").Fails(t, 3, "it is "+from+", the API server is "+step.release)
			continue
		}
		if from == labs.Release {
			isRolledBack(t, n, image, step.release)
		}
		n.PMKSched(t, "upgrade", "--name", "my-scheduler", "--stable-for", "5s").Fails(t, 2, "confirm with --yes")
		n.PMKSched(t, "upgrade", "--name", "my-scheduler", "--stable-for", "5s", "--yes").OK(t).Prints(t,
			"is upgraded from "+from+" to "+step.release, "and binds pods")
		n.PMKSched(t, "upgrade", "check").OK(t).Prints(t, "up to date: "+step.release)
		n.PMKSched(t, "status").OK(t)
		n.PMKSched(t, "verify", "--name", "my-scheduler").OK(t)
		keepsItsConfiguration(t, n, step.release)
		n.PMKSched(t, "history", "--name", "my-scheduler").OK(t).Prints(t, "upgrade from "+from)
		n.PMKSched(t, "rollback", "--name", "my-scheduler", "--to", "1").Fails(t, 2, "its kube-scheduler is "+first)
		from = step.release
	}
	n.PMKSched(t, "restore", "--yes").OK(t)
	n.Uninstall(t, "my-scheduler")
}

// checkDue returns the report of `upgrade check` for the only scheduler, which is due.
func checkDue(t *testing.T, n *labs.Node) lifecycle.Upgrade {
	t.Helper()
	r := n.PMKSched(t, "upgrade", "check", "-o", "json")
	r.Fails(t, 3, "are not at")
	report := run.Decode[replace.UpgradeReport](t, r.Stdout)
	if len(report.Schedulers) != 1 || !report.Schedulers[0].Due || len(report.Nodes) != 1 || !report.Nodes[0].Due {
		t.Fatalf("report: %+v", report)
	}
	return report.Schedulers[0]
}

// isRolledBack checks that the scheduler runs as before after upgrades that cannot work: one that
// ends, and one that binds no pod.
func isRolledBack(t *testing.T, n *labs.Node, image, release string) {
	t.Helper()
	crash := "localhost/crash:" + release
	n.Faulty(t, "crash", release)
	n.PMKSched(t, "upgrade", "--name", "my-scheduler", "--image", crash).Fails(t, 1, "this scheduler ends at once",
		"which ran before, is restored")
	file := run.WriteFile(t, "blocking.yaml", blocking)
	n.PMKSched(t, "upgrade", "-f", file, "--busybox", "/bin/busybox", "--stable-for", "1s").Fails(t, 3, "verify",
		"which ran before, is restored")
	if got := n.Kubectl(t, "get", "deployment", "-n", "kube-system", "my-scheduler", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}"); got != image {
		t.Errorf("the image is %s, want %s", got, image)
	}
	n.PMKSched(t, "verify", "--name", "my-scheduler").OK(t)
}

// keepsItsConfiguration checks that the configuration for a release contains the article's setting
// and the plugin.
func keepsItsConfiguration(t *testing.T, n *labs.Node, release string) {
	t.Helper()
	config := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l",
		"app.kubernetes.io/instance=my-scheduler,pmk-sched.io/release="+release, "-o", "yaml")
	for _, text := range []string{"kubescheduler.config.k8s.io/v1\n", "LeastAllocated", "weight: 3", "name: Timestamp"} {
		if !strings.Contains(config, text) {
			t.Errorf("the configuration for %s lacks %q:\n%s", release, text, config)
		}
	}
}
