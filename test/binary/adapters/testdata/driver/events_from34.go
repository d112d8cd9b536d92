//go:build ignore

package main

import (
	fwk "k8s.io/kube-scheduler/framework"
)

var nodeAction, anyAction = int64(fwk.Add | fwk.UpdateNodeLabel), int64(fwk.All)
