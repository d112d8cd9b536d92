//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func reject(pod framework.WaitingPod, plugin, message string) { pod.Reject(plugin, message) }
