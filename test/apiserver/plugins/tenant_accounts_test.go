//go:build linux && (cases || releases)

package plugins

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bypass is the label of pods that were created with a node: no scheduler has placed them.
	bypass = "bypass"
	// tampered is the label of pods whose devices the tenant has changed.
	tampered = "tampered"
)

// accounts are the pods that the scheduler has placed and that have not finished, from the events
// of the API server in their order: when a pod is bound, all deletions that the scheduler can have
// counted were observed.
type accounts struct {
	limits map[string]corev1.ResourceList // by namespace

	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod
	bound map[string]int // by namespace
	wrong []string
}

func newAccounts(limits map[string]amounts) *accounts {
	a := &accounts{limits: map[string]corev1.ResourceList{}, pods: map[types.UID]*corev1.Pod{}, bound: map[string]int{}}
	for namespace, limit := range limits {
		a.limits[namespace] = limit.list()
	}
	return a
}

func (a *accounts) observe(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok || pod.Labels[bypass] != "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(a.pods, pod.UID)
		return
	}
	if a.pods[pod.UID] != nil {
		return
	}
	a.pods[pod.UID] = pod
	a.bound[pod.Namespace]++
	a.checkMax(pod)
	if !strings.HasSuffix(pod.Spec.NodeName, "-"+rogue) {
		a.checkDevices(pod)
	}
}

// checkMax compares the sums of a team with its limits when one of its pods is bound.
func (a *accounts) checkMax(bound *corev1.Pod) {
	for name, limit := range a.limits[bound.Namespace] {
		if need := requested(bound, name); need.Sign() <= 0 {
			continue
		}
		var sum resource.Quantity
		for _, pod := range a.pods {
			if pod.Namespace == bound.Namespace {
				sum.Add(requested(pod, name))
			}
		}
		if sum.Cmp(limit) > 0 {
			a.wrong = append(a.wrong, fmt.Sprintf("pod %s/%s was bound: %s of %s are used, more than %s", bound.Namespace,
				bound.Name, sum.String(), name, limit.String()))
		}
	}
}

// checkDevices adds what the pods on a node have of each of its devices, of 1000 each.
func (a *accounts) checkDevices(bound *corev1.Pod) {
	need := requested(bound, gpuMilli)
	if need.Sign() <= 0 || bound.Labels[tampered] != "" {
		return
	}
	used := map[int]int64{}
	for _, pod := range a.pods {
		gpu := requested(pod, gpuMilli)
		if pod.Spec.NodeName != bound.Spec.NodeName || gpu.Sign() <= 0 || pod.Labels[tampered] != "" {
			continue
		}
		devices := strings.Split(pod.Annotations[gpuIndex], ",")
		for _, text := range devices {
			index, err := strconv.Atoi(text)
			if err != nil || index < 0 || index > 3 {
				a.wrong = append(a.wrong, fmt.Sprintf("pod %s/%s has the devices %q", pod.Namespace, pod.Name, text))
				return
			}
			used[index] += gpu.Value() / int64(len(devices))
		}
	}
	for index, sum := range used {
		if sum > 1000 {
			a.wrong = append(a.wrong, fmt.Sprintf("pod %s/%s was bound to node %s with devices %q: %d of 1000 of device %d "+
				"are used", bound.Namespace, bound.Name, bound.Spec.NodeName, bound.Annotations[gpuIndex], sum, index))
		}
	}
}

// requested returns what a pod requests of a resource, without rounding: a scheduler may count
// more.
func requested(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if whole := pod.Spec.Resources; whole != nil {
		if amount, ok := whole.Requests[name]; ok {
			return amount.DeepCopy()
		}
	}
	var running, sidecars, starting resource.Quantity
	for i := range pod.Spec.Containers {
		running.Add(pod.Spec.Containers[i].Resources.Requests[name])
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		amount := c.Resources.Requests[name]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running.Add(amount)
			sidecars.Add(amount)
			continue
		}
		one := sidecars.DeepCopy()
		one.Add(amount)
		if one.Cmp(starting) > 0 {
			starting = one
		}
	}
	if starting.Cmp(running) > 0 {
		return starting
	}
	return running
}

func (a *accounts) report(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("bound pods: %v", a.bound)
	for i, wrong := range a.wrong {
		if i == 10 {
			t.Errorf("and %d more", len(a.wrong)-i)
			break
		}
		t.Error(wrong)
	}
	for _, namespace := range []string{mallory, trudy} {
		if a.bound[namespace] == 0 {
			t.Errorf("no pod of %s was bound", namespace)
		}
	}
}
