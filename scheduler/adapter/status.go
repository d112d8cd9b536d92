package adapter

import "github.com/pmk-sched/pmk-sched/scheduler"

// fromPlugin returns a new status each time, because the framework writes the plugin's name into
// it.
func fromPlugin(s *scheduler.Status) *status {
	switch s.Code() {
	case scheduler.CodeSuccess:
		return nil
	case scheduler.CodeUnschedulable:
		return newStatus(unschedulable, s.Reasons()...)
	case scheduler.CodeUnresolvable:
		return newStatus(unresolvable, s.Reasons()...)
	case scheduler.CodeWait:
		return newStatus(wait, s.Reasons()...)
	case scheduler.CodeSkip:
		return newStatus(skip, s.Reasons()...)
	}
	return asStatus(s.Err())
}

func toPlugin(s *status) *scheduler.Status {
	switch s.Code() {
	case success:
		return nil
	case unschedulable:
		return scheduler.Unschedulable(s.Reasons()...)
	case failure:
		return scheduler.Error(s.AsError())
	}
	return scheduler.Unresolvable(s.Reasons()...)
}
