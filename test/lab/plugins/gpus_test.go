//go:build linux

package plugins

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const gpuMilli corev1.ResourceName = "example.com/gpu-milli"

const gpuIndex = "example.com/gpu-index"

// sharesGPUs gives one worker two GPUs: each takes one pod with 60 % of a GPU, the third of these waits although 80 % are free in total, and one
// with 40 % does not.
func (n *node) sharesGPUs(t *testing.T) {
	t.Helper()
	n.setGPUs(t, two, `"2000"`)
	namespace := n.namespace(t, "gpus")
	n.create(t, namespace, gpuPod("a", 600), gpuPod("b", 600))
	devices := map[string]bool{}
	for _, pod := range n.awaitBound(t, namespace, 2) {
		if pod.Spec.NodeName != two {
			t.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
		}
		devices[pod.Annotations[gpuIndex]] = true
	}
	if !devices["0"] || !devices["1"] {
		t.Errorf("devices %v", devices)
	}
	n.create(t, namespace, gpuPod("waits", 600))
	n.awaitRejected(t, namespace, "waits", "no GPU has enough free")
	n.create(t, namespace, gpuPod("c", 400))
	run.Eventually(t, "a pod is placed on the rest of a GPU", func(context.Context) (bool, string) {
		pod, err := n.Kube.CoreV1().Pods(namespace).Get(run.Context(t), "c", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return pod.Spec.NodeName == two && pod.Annotations[gpuIndex] != "", fmt.Sprint(pod.Status.Conditions)
	})
	n.remove(t, namespace)
	n.setGPUs(t, two, "null")
	t.Log("GPUPacking places shares of GPUs on devices")
}

// setGPUs sets what a worker has of the resource.
func (n *node) setGPUs(t *testing.T, worker, amount string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status": {"capacity": {%q: %s}, "allocatable": {%q: %s}}}`, gpuMilli, amount, gpuMilli, amount)
	if _, err := n.Kube.CoreV1().Nodes().Patch(run.Context(t), worker, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// gpuPod returns a pod that requests thousandths of a GPU.
func gpuPod(name string, amount int64) *corev1.Pod {
	pod := newPod(name)
	requests := corev1.ResourceList{gpuMilli: *resource.NewQuantity(amount, resource.DecimalSI)}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	return pod
}
