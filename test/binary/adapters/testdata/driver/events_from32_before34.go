//go:build ignore

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

var nodeAction, anyAction = int64(framework.Add | framework.UpdateNodeLabel), int64(framework.All)
