//go:build linux && releases

package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const gpuMilli corev1.ResourceName = "example.com/gpu-milli"

const (
	gpuIndex = "example.com/gpu-index"
	// freedTime is how long a pod that was rejected once may wait after the event that makes room: its back-off of a second included.
	freedTime = 2 * time.Second
)

// gpus is a scheduler with the plugin and nodes with two GPUs each.
type gpus struct {
	*schedulerProcess
	ctx       context.Context
	kube      kubernetes.Interface
	namespace string
}

func startGPUs(t *testing.T, namespace string, nodes int) *gpus {
	t.Helper()
	built := buildScheduler(t.Context(), t) // for the first time that takes minutes
	x := &gpus{ctx: testContext(t), kube: server.Client(t), namespace: namespace}
	createNamespace(x.ctx, t, x.kube, namespace)
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", namespace, i)
		createReadyNode(x.ctx, t, x.kube, name)
		node, err := x.kube.CoreV1().Nodes().Get(x.ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Allocatable[gpuMilli] = resource.MustParse("2000")
		node.Status.Capacity = node.Status.Allocatable.DeepCopy()
		if _, err := x.kube.CoreV1().Nodes().UpdateStatus(x.ctx, node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.kube.CoreV1().Nodes().Delete(context.WithoutCancel(x.ctx), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	const args = `{resource: example.com/gpu-milli, devices: {units: 1000}, annotations: {index: example.com/gpu-index}}`
	rules, err := gpupacking.Rules(scheduler.NewArguments([]byte(args)))
	if err != nil {
		t.Fatal(err)
	}
	x.schedulerProcess = startPlugin(x.ctx, t, x.kube, built, namespace, profiles.Plugin{Name: "GPUPacking", Weight: 10, Args: []byte(args)}, rules)
	return x
}

func (x *gpus) create(t *testing.T, name string, gpu int64) {
	t.Helper()
	pod := newPod(x.namespace, 0)
	pod.Name, pod.Spec.SchedulerName = name, x.namespace
	if gpu > 0 {
		amount := corev1.ResourceList{gpuMilli: *resource.NewQuantity(gpu, resource.DecimalSI)}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount}
	}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // these nodes have no kubelet, so they never become ready
	if _, err := x.kube.CoreV1().Pods(x.namespace).Create(x.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// device returns the node and the devices of a pod, when it is bound.
func (x *gpus) device(t *testing.T, name string) string {
	t.Helper()
	awaitBound(x.ctx, t, x.kube, x.namespace, name)
	pod, err := x.kube.CoreV1().Pods(x.namespace).Get(x.ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Spec.NodeName + " " + pod.Annotations[gpuIndex]
}

func TestSharesOfGPUsArePlacedOnDevices(t *testing.T) {
	x := startGPUs(t, "shares", 2)
	var devices []string
	for i := range 4 {
		name := fmt.Sprintf("share-%d", i)
		x.create(t, name, 600)
		devices = append(devices, x.device(t, name))
	}
	slices.Sort(devices)
	if want := []string{"shares-0 0", "shares-0 1", "shares-1 0", "shares-1 1"}; !slices.Equal(devices, want) {
		t.Fatalf("devices %q, want %q", devices, want)
	}
	// On each node 800 are free, on no device more than 400.
	x.create(t, "half", 500)
	x.awaitReason(t, "half", "no GPU has enough free")
	x.create(t, "rest", 400)
	x.device(t, "rest")
	freed := x.device(t, "share-3")
	now := int64(0)
	if err := x.kube.CoreV1().Pods(x.namespace).Delete(x.ctx, "share-3", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := x.device(t, "half"); got != freed {
		t.Errorf("the pod is on %q, want %q", got, freed)
	}
	if took := time.Since(began); took > freedTime {
		t.Errorf("the pod was bound %s after a GPU was free", took)
	}
}

func TestDevicesAreKnownAfterARestart(t *testing.T) {
	x := startGPUs(t, "restart", 1)
	x.create(t, "first", 700)
	first := x.device(t, "first")
	if err := x.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-x.done
	x.start(t)
	x.create(t, "whole", 1000)
	if second := x.device(t, "whole"); second == first {
		t.Errorf("both pods are on %q", first)
	}
	x.create(t, "plain", 0)
	if got := x.device(t, "plain"); got != "restart-0 " {
		t.Errorf("a pod without GPUs: %q", got)
	}
}

// awaitReason waits until the scheduler has rejected a pod with a reason.
func (x *gpus) awaitReason(t *testing.T, name, reason string) {
	t.Helper()
	run.Eventually(t, "pod "+name+" is rejected", func(ctx context.Context) (bool, string) {
		pod, err := x.kube.CoreV1().Pods(x.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(fmt.Sprint(pod.Status.Conditions), reason), fmt.Sprint(pod.Status.Conditions)
	})
}
