//go:build ignore

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func rejections(statuses map[string]*status) framework.NodeToStatusMap { return statuses }
