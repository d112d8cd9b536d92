//go:build linux && cases

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The page on managed clusters, from a laptop. The nodes have the published image.
func TestPageOfManagedClustersIsTrue(t *testing.T) {
	n := labs.Shared(t, lab.LayoutHosted)
	n.Load(t, "registry.k8s.io/kube-scheduler:"+n.Release, "--branch", n.Release)
	n.Kubectl(t, "create", "namespace", "shop")
	t.Cleanup(func() { n.Kubectl(t, "delete", "namespace", "shop") })
	n.Apply(t, strings.NewReplacer("namespace: default", "namespace: shop", "name: main,",
		"name: main, resources: {requests: {cpu: 200m, memory: 100Mi}},").Replace(labs.Pods("web", "", n.Image(t), 6)))
	n.Kubectl(t, "-n", "shop", "rollout", "status", "deployment", "web")
	runPage(t, n, "start-managed.md")
}

// The page on plugins, on a control-plane node that has Go.
func TestPageOfPluginsIsTrue(t *testing.T) {
	runPage(t, labs.Shared(t, "pmk"), "start-plugin.md")
}

// The page on extenders, with an extender as tutorials show it.
func TestPageOfExtendersIsTrue(t *testing.T) {
	n := labs.Shared(t, "pmk")
	program := filepath.Join(t.TempDir(), "extender")
	compile := exec.CommandContext(run.Context(t), "go", "build", "-o", program, "./test/lab/install/testdata/extender")
	compile.Dir, compile.Env = run.Root(), append(os.Environ(), "CGO_ENABLED=0")
	run.Command(t, compile).OK(t)
	n.Import(t, "registry.example.com/you/my-extender:v1", "/extender", image.File{Path: "/extender", Source: program})
	runPage(t, n, "start-extender.md")
}
