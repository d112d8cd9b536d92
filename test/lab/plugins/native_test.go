//go:build linux && pluginlab

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
)

// schedulerPlugins are the plugins of the scheduling special interest group: a line of versions for each minor.
const schedulerPlugins = "sigs.k8s.io/scheduler-plugins"

// nativeDescription is a scheduler with plugins of schedulerPlugins at a version, which its last argument lists.
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
			m := up(t, subject{release: test.release, layout: "kubeadm"})
			m.kubectl(t, "apply", "-f", filepath.Join(moduleDir(t, schedulerPlugins+"@"+test.version), "config", "crd", "bases"))
			m.kubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/podgroups.scheduling.x-k8s.io", "crd/elasticquotas.scheduling.x-k8s.io")
			file := write(t, "pmk-sched.yaml", fmt.Sprintf(nativeDescription, schedulerPlugins, test.version, test.more))
			image := "localhost/native:" + test.release
			m.build(t, image, "-f", file)
			m.pmkSched(t, "deploy", "-f", file, "--image", image).ok(t)
			m.pmkSched(t, "verify", "-f", file).ok(t)
			m.place(t, 3) // pods of no group
			m.schedulesCompleteGroupsOnly(t)
			if test.more != "" {
				m.keepsQuotas(t)
			}
			m.isContent(t)
			m.uninstall(t)
		})
	}
}

// moduleDir is where a module that was downloaded lies.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(patience(t), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(run(t, cmd).ok(t).stdout), &found); err != nil || found.Dir == "" {
		t.Fatalf("download %s: %+v: %v", module, found, err)
	}
	return found.Dir
}

// createCustom makes an object of the plugins' own group.
func (m *master) createCustom(t *testing.T, namespace, kind, plural string, spec map[string]any) {
	t.Helper()
	const group, version = "scheduling.x-k8s.io", "v1alpha1"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": "tested", "namespace": namespace}, "spec": spec,
	}}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	if _, err := m.dynamic.Resource(resource).Namespace(namespace).Create(patience(t), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// schedulesCompleteGroupsOnly makes a group of three, one after the other.
func (m *master) schedulesCompleteGroupsOnly(t *testing.T) {
	t.Helper()
	namespace := m.namespace(t, "gang")
	m.createCustom(t, namespace, "PodGroup", "podgroups", map[string]any{"minMember": int64(3), "scheduleTimeoutSeconds": int64(60)})
	member := func(name string) *corev1.Pod {
		pod := newPod(name)
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "tested"}
		return pod
	}
	m.create(t, namespace, member("first"), member("second"))
	for _, name := range []string{"first", "second"} {
		m.awaitRejected(t, namespace, name, "cannot find enough sibling pods")
	}
	m.place(t, 3) // others pass it meanwhile
	for _, pod := range m.list(t, namespace) {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s of an incomplete group is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	m.create(t, namespace, member("third"))
	m.awaitBound(t, namespace, 3)
	m.remove(t, namespace)
	t.Log("Coscheduling schedules a group when it is complete, and not before")
}

// keepsQuotas makes more pods than the quota of their namespace allows.
func (m *master) keepsQuotas(t *testing.T) {
	t.Helper()
	namespace := m.namespace(t, "quota")
	m.createCustom(t, namespace, "ElasticQuota", "elasticquotas", map[string]any{"min": map[string]any{"cpu": "2"}, "max": map[string]any{"cpu": "2"}})
	wanting := func(name string) *corev1.Pod {
		pod := newPod(name)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return pod
	}
	m.create(t, namespace, wanting("first"), wanting("second"))
	m.awaitBound(t, namespace, 2)
	m.create(t, namespace, wanting("third"))
	m.awaitRejected(t, namespace, "third", "ElasticQuota")
	if err := m.kube.CoreV1().Pods(namespace).Delete(patience(t), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	m.awaitBound(t, namespace, 2)
	m.remove(t, namespace)
	t.Log("CapacityScheduling keeps a namespace's quota")
}
