package scheduler

import "strings"

// Code is the kind of a Status.
type Code int

// The codes, with the meaning that the framework gives them.
const (
	// CodeSuccess is that of a nil Status.
	CodeSuccess Code = iota
	// CodeError is an unexpected failure: the attempt ends and the pod is tried again after a while.
	CodeError
	// CodeUnschedulable rejects; removing other pods might help.
	CodeUnschedulable
	// CodeUnresolvable rejects, and removing other pods does not help.
	CodeUnresolvable
	// CodeWait is Permit's: hold the pod.
	CodeWait
	// CodeSkip leaves the plugin's next point out, or leaves binding to the next plugin.
	CodeSkip
)

// String returns the code's name as the framework spells it.
func (c Code) String() string {
	switch c {
	case CodeSuccess:
		return "Success"
	case CodeError:
		return "Error"
	case CodeUnschedulable:
		return "Unschedulable"
	case CodeUnresolvable:
		return "UnschedulableAndUnresolvable"
	case CodeWait:
		return "Wait"
	case CodeSkip:
		return "Skip"
	}
	return "Unknown"
}

// Status is what an extension point answers. A nil *Status is success. It never changes, so
// one value can be kept and returned for many pods and nodes, from many goroutines.
type Status struct {
	code    Code
	reasons []string
	err     error
}

// Unschedulable rejects the pod or node. The reasons end in the pod's condition and event,
// counted over the nodes: keep them short and the same for nodes that are alike.
func Unschedulable(reasons ...string) *Status {
	return &Status{code: CodeUnschedulable, reasons: reasons}
}

// Unresolvable rejects as Unschedulable does, and says that preemption cannot help.
func Unresolvable(reasons ...string) *Status {
	return &Status{code: CodeUnresolvable, reasons: reasons}
}

// Skip is for PreFilter, PreScore and Bind; see there.
func Skip() *Status {
	return &Status{code: CodeSkip}
}

// Wait is for Permit; see there.
func Wait(reasons ...string) *Status {
	return &Status{code: CodeWait, reasons: reasons}
}

// Error ends the attempt with err. It returns nil for a nil err, so that the result of a call can be passed on.
func Error(err error) *Status {
	if err == nil {
		return nil
	}
	return &Status{code: CodeError, reasons: []string{err.Error()}, err: err}
}

// Code returns the kind of s.
func (s *Status) Code() Code {
	if s == nil {
		return CodeSuccess
	}
	return s.code
}

// Reasons returns the reasons that s was made with. They must not be changed.
func (s *Status) Reasons() []string {
	if s == nil {
		return nil
	}
	return s.reasons
}

// Err returns the error that s was made with, nil unless its code is CodeError.
func (s *Status) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// IsSuccess tells whether s is nil.
func (s *Status) IsSuccess() bool { return s.Code() == CodeSuccess }

// String returns the code and the reasons.
func (s *Status) String() string {
	if len(s.Reasons()) == 0 {
		return s.Code().String()
	}
	return s.Code().String() + ": " + strings.Join(s.Reasons(), ", ")
}
