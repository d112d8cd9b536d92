//go:build ignore

package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimsRequest returns 0: in these releases claims use no resources of nodes.
func claimsRequest(*corev1.Pod, corev1.ResourceName) resource.Quantity { return resource.Quantity{} }

func claimsResources(*corev1.Pod) []corev1.ResourceName { return nil }
