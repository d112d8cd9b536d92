//go:build ignore

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type status = framework.Status

func newStatus(code string, reasons []string) *status {
	if code == "Unschedulable" {
		return framework.NewStatus(framework.Unschedulable, reasons...)
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasons...)
}

func cloned(state *framework.CycleState) *framework.CycleState { return state.Clone() }
