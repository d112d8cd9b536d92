package noderun

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func replaceTask() Task {
	return Task{
		Node: "CP-1.example.com", Image: "registry.example.com/pmk-sched:v1",
		Scheduler: "registry.example.com/kube-scheduler:v1.24.3", Programs: []string{"/go-runner",
			"/usr/local/bin/kube-scheduler"},
		Kubeconfig: "/etc/kubernetes/admin.conf", Directories: []string{"/etc/kubernetes"},
		Created: []string{"/var/lib/pmk-sched"},
		Request: []byte(`{"version":"v1"}`), Timeout: 13 * time.Minute,
	}
}

// docs/security.md describes the objects in the golden files.
func TestObjectsOfATask(t *testing.T) {
	restore := replaceTask()
	restore.Scheduler, restore.Programs, restore.Directories = "", nil, []string{"/etc/pf9"}
	restore.Kubeconfig = "/etc/pf9/kube.d/kubeconfigs/admin.yaml"
	for name, task := range map[string]Task{"replace": replaceTask(), "restore": restore} {
		var got []byte
		for _, object := range []any{task.Secret(), task.Pod()} {
			text, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, "---\n"...), text...)
		}
		golden.Equal(t, "testdata/"+name+".yaml", got)
	}
}

// Only the container with the files of pmk-sched's own image has rights, and sees the node.
func TestOnlyTheProgramItselfIsPrivileged(t *testing.T) {
	pod := replaceTask().Pod()
	if n := len(pod.Spec.InitContainers); n != 2 {
		t.Fatalf("%d init containers", n)
	}
	for _, c := range pod.Spec.InitContainers {
		s := c.SecurityContext
		if s.Privileged != nil || *s.AllowPrivilegeEscalation || *s.RunAsUser == 0 || !*s.RunAsNonRoot ||
			len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("container %s: %+v", c.Name, s)
		}
		for _, mount := range c.VolumeMounts {
			if mount.Name != "tool" && mount.Name != "scheduler" {
				t.Errorf("container %s has the volume %s", c.Name, mount.Name)
			}
		}
	}
	if main := pod.Spec.Containers; len(main) != 1 || main[0].Image != replaceTask().Image ||
		main[0].Command[0] != Program {
		t.Errorf("containers %+v", main)
	}
	if *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pod has a token")
	}
}
