package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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

// layouts are the shapes of master that the main job is shown on, with what detect finds there.
var layouts = []struct {
	layout, kubeconfig, labelKey, taint string
}{
	{"pmk", "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml", "node-role.kubernetes.io/master", "node-role.kubernetes.io/master=true:NoSchedule"},
	{"kubeadm", "/etc/kubernetes/scheduler.conf", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/control-plane=:NoSchedule"},
}

func TestDetectFindsWhatTheMasterIs(t *testing.T) {
	for _, want := range layouts {
		t.Run(want.layout, func(t *testing.T) {
			m := lend(t, want.layout)
			out := m.pmkSched(t, "detect", "-o", "json").ok(t).stdout
			got := decode[detected](t, out)
			for _, f := range []struct{ what, got, want string }{
				{"server.version", got.Server.Version, branch},
				{"distribution", got.Distribution, want.layout},
				{"layout", got.Layout, want.layout},
				{"source.branch", got.Source.Branch, branch},
				{"source.module", got.Source.Module, "k8s.io/kubernetes@" + branch},
				{"source.go", got.Source.Go, "1.18.3"},
				{"configuration.apiVersion", got.Configuration.APIVersion, "kubescheduler.config.k8s.io/v1beta3"},
				{"configuration.accepted", strings.Join(got.Configuration.Accepted, " "), "kubescheduler.config.k8s.io/v1beta2 kubescheduler.config.k8s.io/v1beta3"},
				{"controlPlane.labelKey", got.ControlPlane.LabelKey, want.labelKey},
				{"scheduler.port", fmt.Sprint(got.Scheduler.Port), "10260"},
				{"credentials.kubeconfig", got.Credentials.Kubeconfig, want.kubeconfig},
			} {
				if f.got != f.want {
					t.Errorf("%s: got %q, want %q", f.what, f.got, f.want)
				}
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

// podsManifest is a Deployment whose pods may run on the master and name the given scheduler; "" names none.
func podsManifest(name, scheduler, image string, replicas int) string {
	line := ""
	if scheduler != "" {
		line = "schedulerName: " + scheduler
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      %[2]s
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: %[3]s, command: [/bin/sleep, "100000"]}]
`, name, line, image, replicas)
}

// scheduledBy counts, by the scheduler that reported it, the Scheduled events of a Deployment's pods.
func (m master) scheduledBy(t *testing.T, deployment string) map[string]int {
	t.Helper()
	events := m.kubectl(t, "get", "events", "-n", "default", "--field-selector", "reason=Scheduled",
		"-o", `jsonpath={range .items[*]}{.involvedObject.name} {.source.component}{.reportingComponent}{"\n"}{end}`)
	count := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(events), "\n") {
		pod, by, _ := strings.Cut(line, " ")
		if strings.HasPrefix(pod, deployment+"-") {
			count[by]++
		}
	}
	return count
}

func TestMainJob(t *testing.T) {
	for _, want := range layouts {
		t.Run(want.layout, func(t *testing.T) {
			m := lend(t, want.layout)
			image := m.image(t)
			t.Cleanup(func() { m.uninstall(t, "my-scheduler") })

			deployed := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
			if !strings.Contains(deployed.stdout, "Deployment/kube-system/my-scheduler created") {
				t.Errorf("the change set does not tell of the Deployment: %s", deployed)
			}
			if steps := passedSteps(deployed.stderr); !slices.Equal(steps, deploySteps) {
				t.Errorf("got the steps %q, want %q", steps, deploySteps)
			}
			m.holdsNoKeyInConfigMaps(t)
			again := m.pmkSched(t, "deploy", "--name", "my-scheduler", "--image", image).ok(t)
			for _, line := range strings.Split(strings.TrimSpace(again.stdout), "\n") {
				if strings.Contains(line, "/") && !strings.Contains(line, "unchanged") {
					t.Errorf("a second deploy changes something: %s", line)
				}
			}
			m.pmkSched(t, "verify", "--name", "my-scheduler").ok(t)

			m.apply(t, podsManifest("twenty", "my-scheduler", image, 20))
			m.apply(t, podsManifest("others", "", image, 5))
			m.kubectl(t, "rollout", "status", "deployment/twenty", "--timeout=10m")
			m.kubectl(t, "rollout", "status", "deployment/others", "--timeout=10m")
			t.Cleanup(func() { m.kubectl(t, "delete", "deployment", "twenty", "others", "--wait=true") })
			if got := m.scheduledBy(t, "twenty"); got["my-scheduler"] != 20 || len(got) != 1 {
				t.Errorf("the 20 pods that name my-scheduler were scheduled by %v", got)
			}
			if got := m.scheduledBy(t, "others"); got["default-scheduler"] != 5 || len(got) != 1 {
				t.Errorf("the 5 pods that name no scheduler were scheduled by %v", got)
			}
		})
	}
}

// uninstall takes a scheduler away and fails the test if anything of it stays.
func (m master) uninstall(t *testing.T, name string) {
	t.Helper()
	m.pmkSched(t, "uninstall", "--name", name, "--yes").ok(t)
	left := m.kubectl(t, "get", "deployments,pods,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases",
		"-A", "-l", "app.kubernetes.io/instance="+name, "-o", "name")
	if strings.TrimSpace(left) != "" {
		t.Errorf("left behind by uninstall: %s", left)
	}
}
