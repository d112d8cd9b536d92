package preemption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// requests returns the requests of a class's typical pod: the median for each resource that at
// least half its pods request. pods is the number of its pods. If it is 0, the requests are typical
// for all pods without a DaemonSet.
func (c *cluster) requests(class string) (requests corev1.ResourceList, pods int) {
	var all []corev1.ResourceList
	for i := range c.pods {
		if c.pods[i].class == class {
			all = append(all, c.pods[i].requests)
		}
	}
	if pods = len(all); pods == 0 {
		for i := range c.pods {
			if kind := c.pods[i].kind; kind != "DaemonSet" && kind != "Node" {
				all = append(all, c.pods[i].requests)
			}
		}
	}
	return median(all), pods
}

// median returns the median for each resource that at least half the lists have. If there are two
// values in the middle, it is the larger one.
func median(all []corev1.ResourceList) corev1.ResourceList {
	values := map[corev1.ResourceName][]resource.Quantity{}
	for _, requests := range all {
		for name, quantity := range requests {
			if !quantity.IsZero() {
				values[name] = append(values[name], quantity)
			}
		}
	}
	result := corev1.ResourceList{}
	for name, quantities := range values {
		if 2*len(quantities) < len(all) {
			continue
		}
		slices.SortFunc(quantities, func(a, b resource.Quantity) int { return a.Cmp(b) })
		result[name] = quantities[len(quantities)/2]
	}
	return result
}
