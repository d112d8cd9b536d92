package f

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// fromPlugin gives the framework a status of its own: it writes the plugin's name into it.
func fromPlugin(s *scheduler.Status) *fwk.Status {
	switch s.Code() {
	case scheduler.CodeSuccess:
		return nil
	case scheduler.CodeUnschedulable:
		return fwk.NewStatus(fwk.Unschedulable, s.Reasons()...)
	case scheduler.CodeUnresolvable:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, s.Reasons()...)
	case scheduler.CodeWait:
		return fwk.NewStatus(fwk.Wait, s.Reasons()...)
	case scheduler.CodeSkip:
		return fwk.NewStatus(fwk.Skip, s.Reasons()...)
	}
	return fwk.AsStatus(s.Err())
}

func toPlugin(s *fwk.Status) *scheduler.Status {
	switch s.Code() {
	case fwk.Success:
		return nil
	case fwk.Unschedulable:
		return scheduler.Unschedulable(s.Reasons()...)
	case fwk.Error:
		return scheduler.Error(s.AsError())
	}
	return scheduler.Unresolvable(s.Reasons()...)
}
