//go:build pmksched

package main

import (
	fwk "k8s.io/kube-scheduler/framework"
)

var nodeAction, anyAction = int64(fwk.Add | fwk.UpdateNodeLabel), int64(fwk.All)
