//go:build pmksched

package b

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func nominate(node string) *framework.PostFilterResult {
	return &framework.PostFilterResult{NominatedNodeName: node}
}
