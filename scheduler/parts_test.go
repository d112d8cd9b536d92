package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// manyContainers returns a pod with n containers and n init containers, each with its own resource
// in addition to CPU.
func manyContainers(n int) *corev1.Pod {
	pod, one := &corev1.Pod{}, resource.MustParse("1m")
	for i := range n {
		c := corev1.Container{Name: fmt.Sprint("c-", i)}
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: one, ownResource(i): resource.MustParse("1")}
		pod.Spec.Containers, pod.Spec.InitContainers = append(pod.Spec.Containers, c), append(pod.Spec.InitContainers, c)
	}
	return pod
}

func ownResource(i int) corev1.ResourceName {
	return corev1.ResourceName(fmt.Sprint("example.com/r-", i))
}

// The API server accepts as many containers and resources as fit into an object, and a scheduler
// counts the requests of a pod at each attempt: a container must be read once for each resource
// that it requests, not once for each resource of the pod.
func TestContainersAreReadForTheirOwnResourcesOnly(t *testing.T) {
	const n = 500
	pod := manyContainers(n)
	read := 0
	for _, part := range partsByResource(pod) {
		read += len(part.Spec.Containers) + len(part.Spec.InitContainers)
	}
	if read > 2*n {
		t.Errorf("%d containers are read %d times", 2*n, read)
	}
	got := PodRequests(pod)
	if len(got) != n+2 || got[corev1.ResourceCPU] != n || got[ownResource(7)] != 1 || got[corev1.ResourcePods] != 1 {
		t.Errorf("%d resources, cpu %d, %s %d", len(got), got[corev1.ResourceCPU], ownResource(7), got[ownResource(7)])
	}
}

func BenchmarkRequestsOfManyContainers(b *testing.B) {
	for _, n := range []int{1, 100, 3000} {
		pod := manyContainers(n)
		b.Run(fmt.Sprint(2*n, " containers"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				PodRequests(pod)
			}
		})
	}
}
