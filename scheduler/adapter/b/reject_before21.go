//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func reject(pod framework.WaitingPod, _, message string) { pod.Reject(message) }
