package adapter

import corev1 "k8s.io/api/core/v1"

// otherPod is the pod that AddPod and RemovePod get.
type otherPod = podInfo

func podOfOther(p otherPod) *corev1.Pod { return podOf(p) }
