//go:build linux && labs

package plugins

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// schedulerPlugins are the plugins of the scheduling special interest group: a line of versions for
// each minor.
const schedulerPlugins = "sigs.k8s.io/scheduler-plugins"

// nativeDescription is a scheduler with plugins of schedulerPlugins at a version, which its last
// argument lists.
const nativeDescription = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: ` + scheduler + `, namespace: kube-system}
spec:
  source:
    plugins:
    - module: %[1]s@%[2]s
      package: %[1]s/pkg/coscheduling
      args: {permitWaitingTimeSeconds: 60}
%[3]s
    imports: [%[1]s/apis/config/scheme]
  rbac:
    rules:
    - {apiGroups: [scheduling.x-k8s.io], resources: [podgroups, podgroups/status, elasticquotas, elasticquotas/status], verbs: [get, list, watch, patch, update]}
`

const capacity = `    - module: %[1]s@%[2]s
      package: %[1]s/pkg/capacityscheduling`

// Plugins of another project work on the release that their version is made for.
func TestPluginsOfAnotherProject(t *testing.T) {
	for _, test := range []struct {
		release, version, more string
	}{
		{"v1.32.2", "v0.32.7", fmt.Sprintf(capacity, schedulerPlugins, "v0.32.7")},
		{"v1.34.2", "v0.34.7", ""},
	} {
		t.Run(test.release, func(t *testing.T) {
			n := connect(t, labs.Start(t, labs.Options{Release: test.release, Layout: "kubeadm", Workers: 3}))
			n.Kubectl(t, "apply", "-f", filepath.Join(moduleDir(t, schedulerPlugins+"@"+test.version), "config", "crd", "bases"))
			n.Kubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/podgroups.scheduling.x-k8s.io",
				"crd/elasticquotas.scheduling.x-k8s.io")
			file := run.WriteFile(t, "pmk-sched.yaml", fmt.Sprintf(nativeDescription, schedulerPlugins, test.version, test.more))
			image := "localhost/native:" + test.release
			n.Load(t, image, "--branch", test.release, "-f", file)
			n.UninstallLater(t, scheduler)
			n.PMKSched(t, "deploy", "-f", file, "--image", image).OK(t)
			n.PMKSched(t, "verify", "-f", file).OK(t)
			n.place(t, 3) // pods of no group
			n.schedulesCompleteGroupsOnly(t)
			if test.more != "" {
				n.keepsQuotas(t)
			}
			n.CleanLog(t, scheduler)
		})
	}
}

// moduleDir downloads a module and returns its directory.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(run.Context(t), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(run.Command(t, cmd).OK(t).Stdout), &found); err != nil || found.Dir == "" {
		t.Fatalf("download %s: %+v: %v", module, found, err)
	}
	return found.Dir
}

// createCustom makes an object of the plugins' own group.
func (n *node) createCustom(t *testing.T, namespace, kind, plural string, spec map[string]any) {
	t.Helper()
	const group, version = "scheduling.x-k8s.io", "v1alpha1"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": "tested",
			"namespace": namespace}, "spec": spec,
	}}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	if _, err := n.dynamic.Resource(resource).Namespace(namespace).Create(run.Context(t), object,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// schedulesCompleteGroupsOnly makes a group of three, one after the other.
func (n *node) schedulesCompleteGroupsOnly(t *testing.T) {
	t.Helper()
	namespace := n.namespace(t, "gang")
	n.createCustom(t, namespace, "PodGroup", "podgroups",
		map[string]any{"minMember": int64(3), "scheduleTimeoutSeconds": int64(60)})
	member := func(name string) *corev1.Pod {
		pod := newPod(name)
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "tested"}
		return pod
	}
	n.create(t, namespace, member("first"), member("second"))
	for _, name := range []string{"first", "second"} {
		n.awaitRejected(t, namespace, name, "cannot find enough sibling pods")
	}
	n.place(t, 3) // others pass it meanwhile
	for _, pod := range n.list(t, namespace) {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s of an incomplete group is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	n.create(t, namespace, member("third"))
	n.awaitBound(t, namespace, 3)
	n.remove(t, namespace)
	t.Log("Coscheduling schedules a group when it is complete, and not before")
}

// keepsQuotas makes more pods than the quota of their namespace allows.
func (n *node) keepsQuotas(t *testing.T) {
	t.Helper()
	namespace := n.namespace(t, "quota")
	n.createCustom(t, namespace, "ElasticQuota", "elasticquotas",
		map[string]any{"min": map[string]any{"cpu": "2"}, "max": map[string]any{"cpu": "2"}})
	wanting := func(name string) *corev1.Pod {
		pod := newPod(name)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return pod
	}
	n.create(t, namespace, wanting("first"), wanting("second"))
	n.awaitBound(t, namespace, 2)
	n.create(t, namespace, wanting("third"))
	n.awaitRejected(t, namespace, "third", "ElasticQuota")
	if err := n.Kube.CoreV1().Pods(namespace).Delete(run.Context(t), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.awaitBound(t, namespace, 2)
	n.remove(t, namespace)
	t.Log("CapacityScheduling keeps a namespace's quota")
}
