package adapter

import "k8s.io/kubernetes/pkg/scheduler/framework"

func nominate(node string) *postFilterResult {
	return framework.NewPostFilterResultWithNominatedNode(node)
}
