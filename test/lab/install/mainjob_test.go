//go:build linux

package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// detected is the part of `detect -o json` that scripts rely on.
type detected struct {
	Server struct {
		Version string `json:"version"`
	} `json:"server"`
	Distribution string `json:"distribution"`
	Layout       string `json:"layout"`
	Source       struct {
		Branch string `json:"branch"`
		Module string `json:"module"`
		Go     string `json:"go"`
	} `json:"source"`
	Configuration struct {
		APIVersion string   `json:"apiVersion"`
		Accepted   []string `json:"accepted"`
	} `json:"configuration"`
	ControlPlane struct {
		LabelKey string `json:"labelKey"`
		Nodes    []struct {
			Name   string `json:"name"`
			Taints []struct {
				Key, Value, Effect string
			} `json:"taints"`
		} `json:"nodes"`
	} `json:"controlPlane"`
	Scheduler struct {
		Port int `json:"port"`
	} `json:"scheduler"`
	Credentials struct {
		Kubeconfig string `json:"kubeconfig"`
		Expires    string `json:"expires"`
	} `json:"credentials"`
	Warnings []string `json:"warnings"`
}

// layouts are the layouts of labs, with the values that detect reports there.
var layouts = []struct {
	layout, kubeconfig, labelKey, taint string
}{
	{"pmk", "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml", "node-role.kubernetes.io/master",
		"node-role.kubernetes.io/master=true:NoSchedule"},
	{"kubeadm", "/etc/kubernetes/scheduler.conf", "node-role.kubernetes.io/control-plane",
		"node-role.kubernetes.io/control-plane=:NoSchedule"},
}

func TestDetectReportsTheControlPlaneNode(t *testing.T) {
	t.Parallel()
	for _, want := range layouts {
		t.Run(want.layout, func(t *testing.T) {
			n := labs.Shared(t, want.layout)
			out := n.PMKSched(t, "detect", "-o", "json").OK(t).Stdout
			got := run.Decode[detected](t, out)
			for _, f := range []struct{ what, got, want string }{
				{"server.version", got.Server.Version, labs.Release},
				{"distribution", got.Distribution, want.layout},
				{"layout", got.Layout, want.layout},
				{"source.branch", got.Source.Branch, labs.Release},
				{"source.module", got.Source.Module, "k8s.io/kubernetes@" + labs.Release},
				{"source.go", got.Source.Go, "1.18.3"},
				{"configuration.apiVersion", got.Configuration.APIVersion, "kubescheduler.config.k8s.io/v1beta3"},
				{"configuration.accepted", strings.Join(got.Configuration.Accepted, " "),
					"kubescheduler.config.k8s.io/v1beta2 kubescheduler.config.k8s.io/v1beta3"},
				{"controlPlane.labelKey", got.ControlPlane.LabelKey, want.labelKey},
				{"credentials.kubeconfig", got.Credentials.Kubeconfig, want.kubeconfig},
			} {
				if f.got != f.want {
					t.Errorf("%s: got %q, want %q", f.what, f.got, f.want)
				}
			}
			// Other tests deploy schedulers at the same time; the default scheduler's port is 10259.
			if got.Scheduler.Port < 10260 || got.Scheduler.Port > 10269 {
				t.Errorf("scheduler.port: got %d, want the first free one from 10260", got.Scheduler.Port)
			}
			if got.Credentials.Expires == "" {
				t.Error("credentials.expires is empty")
			}
			if len(got.ControlPlane.Nodes) != 1 {
				t.Fatalf("want one control-plane node: %s", out)
			}
			var taints []string
			for _, taint := range got.ControlPlane.Nodes[0].Taints {
				taints = append(taints, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
			}
			if !slices.Contains(taints, want.taint) {
				t.Errorf("taints: got %v, want %s among them", taints, want.taint)
			}
		})
	}
}

func TestMainJob(t *testing.T) {
	t.Parallel()
	for _, want := range layouts {
		t.Run(want.layout, func(t *testing.T) {
			n, name := labs.Shared(t, want.layout), labs.SchedulerName(t)
			image := n.Image(t)
			args := n.DeployArgs(t, name, image)
			n.UninstallLater(t, name)

			deployed := n.PMKSched(t, args...).OK(t)
			deployed.Prints(t, "Deployment/kube-system/"+name+" created")
			if steps := passedSteps(deployed.Stderr); !slices.Equal(steps, deploySteps) {
				t.Errorf("got the steps %q, want %q", steps, deploySteps)
			}
			hasNoKeyInConfigMaps(t, n, name)
			showsCredentials(t, n, name, "node")
			again := n.PMKSched(t, args...).OK(t)
			for _, line := range strings.Split(strings.TrimSpace(again.Stdout), "\n") {
				if strings.Contains(line, "/") && !strings.Contains(line, "unchanged") {
					t.Errorf("a second deploy changes something: %s", line)
				}
			}
			n.PMKSched(t, "verify", "--name", name).OK(t)
			schedules(t, n, name, image)
			n.CleanLog(t, name)
		})
	}
}

// schedules fails the test unless 20 pods that name the scheduler are bound by it, and 5 that name
// none by the default scheduler.
func schedules(t *testing.T, n *labs.Node, name, image string) {
	t.Helper()
	named, unnamed := name+"-named", name+"-unnamed"
	n.Apply(t, labs.Pods(named, name, image, 20)+"---\n"+labs.Pods(unnamed, "", image, 5))
	t.Cleanup(func() { n.Kubectl(t, "delete", "deployment", named, unnamed, "--wait=true") })
	n.Kubectl(t, "rollout", "status", "deployment/"+named, "--timeout=10m")
	n.Kubectl(t, "rollout", "status", "deployment/"+unnamed, "--timeout=10m")
	if got := n.ScheduledBy(t, "default", named, 20); got[name] != 20 || len(got) != 1 {
		t.Errorf("the 20 pods that name %s were scheduled by %v", name, got)
	}
	if got := n.ScheduledBy(t, "default", unnamed, 5); got["default-scheduler"] != 5 || len(got) != 1 {
		t.Errorf("the 5 pods that name no scheduler were scheduled by %v", got)
	}
}

// hasNoKeyInConfigMaps fails the test if a private key of the scheduler can be read with the right
// to read ConfigMaps.
func hasNoKeyInConfigMaps(t *testing.T, n *labs.Node, name string) {
	t.Helper()
	maps := n.Kubectl(t, "get", "configmaps", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o", "yaml")
	if !strings.Contains(maps, "kind: ConfigMap") || strings.Contains(maps, "client-key-data") ||
		strings.Contains(maps, "PRIVATE KEY") {
		t.Errorf("the ConfigMaps hold a private key, or do not exist:\n%s", maps)
	}
}
