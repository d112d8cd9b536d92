//go:build ignore

package adapter

import "k8s.io/kubernetes/pkg/scheduler/framework"

const tolerations = framework.UpdatePodTolerations
