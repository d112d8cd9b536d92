//go:build linux && labs

package extender

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// fileOfOneMachine names files next to it: a configuration and the sources of a plugin.
const fileOfOneMachine = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: %s}
spec:
  configuration: {file: config.yaml}
  source:
    plugins: [{path: plugin}]
`

const configOfOneMachine = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 42
`

// A scheduler that was deployed from a file is looked after on another machine, which has neither
// the file, nor the files that it names, nor the build cache.
func TestExtenderAndUpgradeOfASchedulerFromAnotherMachine(t *testing.T) {
	n, name := labs.Shared(t, "kubeadm"), labs.SchedulerName(t)
	file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(fileOfOneMachine, name))
	first := filepath.Dir(file)
	if err := os.WriteFile(filepath.Join(first, "config.yaml"), []byte(configOfOneMachine), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := os.DirFS(filepath.Join(run.Root(), "test/apiserver/plugins/testdata/panics"))
	if err := os.CopyFS(filepath.Join(first, "plugin"), plugin); err != nil {
		t.Fatal(err)
	}
	image := "localhost/scheduler-of-one-machine:" + n.Release
	n.Load(t, image, "-f", file, "--branch", n.Release)
	n.Load(t, imageV1, "extender")
	n.UninstallLater(t, name)
	n.PMKSched(t, append([]string{"deploy", "-f", file, "--image", image, "--port", n.Port(t)},
		labs.Stable("1s")...)...).OK(t)
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}

	other := t.TempDir()
	elsewhere := func(args ...string) run.Result {
		return n.PMKSched(t, append([]string{
			"--cache-dir", other}, args...)...)
	}
	elsewhere("diff", "--name", name, "--revision", "1").OK(t)
	elsewhere("upgrade", "check", "--name", name, "--branch", "v1.24.17").Fails(t, 3, "v1.24.17", "Panics")
	elsewhere("credentials", "refresh", "--name", name).OK(t).Prints(t, "nothing to refresh")
	extender := name + "-extender"
	t.Cleanup(func() { n.PMKSched(t, "extender", "uninstall", "--name", extender, "--yes") })
	elsewhere(extenderArgs("deploy", "--name", extender, "--image", imageV1, "--policy", "timestamp", "--ignorable",
		"true",
		"--for", name)...).OK(t)
	config := n.Kubectl(t, "get", "configmap", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o", "yaml")
	for _, text := range []string{"percentageOfNodesToScore: 42", "name: Panics", extender} {
		if !strings.Contains(config, text) {
			t.Errorf("the configuration does not have %q: %s", text, config)
		}
	}
}
