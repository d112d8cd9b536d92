package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// smallestMemory is a memory request, in bytes. The unit of a smaller one is rarely intended: m
// means thousandths.
const smallestMemory = 1 << 10

// oddRequests counts the requests that are probably a mistake, and keeps the first one of each
// kind.
type oddRequests struct {
	tiny, huge           int
	firstTiny, firstHuge string
}

// add examines a pod's requests.
func (o *oddRequests) add(pod *corev1.Pod, requests corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		q := requests[name]
		what := fmt.Sprintf("pod %s/%s requests %s of %s", pod.Namespace, pod.Name, q.String(), name)
		switch {
		case name == corev1.ResourceMemory && q.Sign() > 0 && q.CmpInt64(smallestMemory) < 0:
			if o.tiny++; o.firstTiny == "" || what < o.firstTiny {
				o.firstTiny = what
			}
		case q.Cmp(largest(name)) > 0:
			if o.huge++; o.firstHuge == "" || what < o.firstHuge {
				o.firstHuge = what
			}
		}
	}
}

// largest returns the largest amount of a resource that a scheduler counts.
func largest(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
	}
	return *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
}

// notes returns a note on each kind of odd requests.
func (o *oddRequests) notes() []string {
	var all []string
	note := func(count int, first, why string) {
		switch {
		case count > 1:
			all = append(all, fmt.Sprintf("%s (and %d more): %s", first, count-1, why))
		case count == 1:
			all = append(all, first+": "+why)
		}
	}
	note(o.tiny, o.firstTiny, "less than 1 KiB, the unit m means thousandths")
	note(o.huge, o.firstHuge, "more than 2^63-1, schedulers count it as less")
	return all
}
