//go:build pmksched

package c

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// fromPlugin gives the framework a status of its own: it writes the plugin's name into it.
func fromPlugin(s *scheduler.Status) *framework.Status {
	switch s.Code() {
	case scheduler.CodeSuccess:
		return nil
	case scheduler.CodeUnschedulable:
		return framework.NewStatus(framework.Unschedulable, s.Reasons()...)
	case scheduler.CodeUnresolvable:
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, s.Reasons()...)
	case scheduler.CodeWait:
		return framework.NewStatus(framework.Wait, s.Reasons()...)
	case scheduler.CodeSkip:
		return framework.NewStatus(framework.Skip, s.Reasons()...)
	}
	return framework.AsStatus(s.Err())
}

func toPlugin(s *framework.Status) *scheduler.Status {
	switch s.Code() {
	case framework.Success:
		return nil
	case framework.Unschedulable:
		return scheduler.Unschedulable(s.Reasons()...)
	case framework.Error:
		return scheduler.Error(s.AsError())
	}
	return scheduler.Unresolvable(s.Reasons()...)
}
