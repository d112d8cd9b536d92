//go:build ignore

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A taint may have kept these releases from reporting the node before.
var nodeAction, anyAction = int64(framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeTaint), int64(framework.All)
