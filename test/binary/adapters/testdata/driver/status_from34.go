//go:build ignore

package main

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type status = fwk.Status

func newStatus(code string, reasons []string) *status {
	if code == "Unschedulable" {
		return fwk.NewStatus(fwk.Unschedulable, reasons...)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons...)
}

func cloned(state *framework.CycleState) *framework.CycleState {
	return state.Clone().(*framework.CycleState)
}
