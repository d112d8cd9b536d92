package scheduler

import "strings"

// Code is the kind of a Status.
type Code int

// The codes, with the same meaning as in the framework.
const (
	// CodeSuccess is the code of a nil Status.
	CodeSuccess Code = iota
	// CodeError is an unexpected failure: the attempt ends and the pod is retried after a backoff.
	CodeError
	// CodeUnschedulable rejects; preemption might help.
	CodeUnschedulable
	// CodeUnresolvable rejects; preemption cannot help.
	CodeUnresolvable
	// CodeWait is for Permit: hold the pod.
	CodeWait
	// CodeSkip skips the plugin's Filter, Score or PreBind, or passes binding on to the next plugin.
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

// Status is the result of an extension point. A nil *Status is success. A Status is immutable: one
// value can be returned for many pods and nodes, from many goroutines.
type Status struct {
	code    Code
	reasons []string
	err     error
}

// Unschedulable rejects the pod or node. The scheduler counts equal reasons over the nodes and
// writes them to the pod's condition and event: keep them short, and without details of one node.
func Unschedulable(reasons ...string) *Status {
	return &Status{code: CodeUnschedulable, reasons: reasons}
}

// Unresolvable is Unschedulable for rejections where preemption cannot help.
func Unresolvable(reasons ...string) *Status {
	return &Status{code: CodeUnresolvable, reasons: reasons}
}

// Skip is for PreFilter, PreScore, PreBindPreFlight and Bind; see these methods.
func Skip() *Status {
	return &Status{code: CodeSkip}
}

// Wait is for Permit; see that method.
func Wait(reasons ...string) *Status {
	return &Status{code: CodeWait, reasons: reasons}
}

// Error ends the attempt with err. It returns nil if err is nil.
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

// Reasons returns the reasons of s. They must not be modified.
func (s *Status) Reasons() []string {
	if s == nil {
		return nil
	}
	return s.reasons
}

// Err returns the error of s, nil unless its code is CodeError.
func (s *Status) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// IsSuccess reports whether s is a success.
func (s *Status) IsSuccess() bool { return s.Code() == CodeSuccess }

// String returns the code and the reasons.
func (s *Status) String() string {
	if len(s.Reasons()) == 0 {
		return s.Code().String()
	}
	return s.Code().String() + ": " + strings.Join(s.Reasons(), ", ")
}
