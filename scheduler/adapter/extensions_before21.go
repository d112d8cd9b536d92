//go:build ignore

package adapter

import corev1 "k8s.io/api/core/v1"

// otherPod is the pod that AddPod and RemovePod get.
type otherPod = *corev1.Pod

func podOfOther(p otherPod) *corev1.Pod { return p }
