//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// rounded rounds a request up, because these releases add integers (Resource.Add of
// pkg/scheduler/framework/types.go).
func rounded(name corev1.ResourceName, request resource.Quantity) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(amountOf(name, request), resource.DecimalSI)
	}
	return *resource.NewQuantity(amountOf(name, request), resource.DecimalSI)
}
