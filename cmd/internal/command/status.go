package command

import (
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Exit statuses.
const (
	StatusSuccess     = 0
	StatusFailure     = 1
	StatusUsage       = 2 // usage or input error; nothing was changed
	StatusCheckFailed = 3 // a check failed, or drift was found
)

// CheckFailed returns the error for a finding, which is not a failure.
func CheckFailed(format string, args ...any) error {
	return &checkFailedError{fmt.Sprintf(format, args...)}
}

type checkFailedError struct{ text string }

func (e *checkFailedError) Error() string     { return e.text }
func (e *checkFailedError) CheckFailed() bool { return true }

// ExitError is an exit status without a message.
type ExitError struct{ Status int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// ExitStatus returns the exit status for the error of a command.
func ExitStatus(err error) int {
	var exit *ExitError
	var check interface{ CheckFailed() bool }
	switch {
	case err == nil:
		return StatusSuccess
	case errors.As(err, &exit):
		return exit.Status
	case problem.IsInvalid(err):
		return StatusUsage
	case errors.As(err, &check) && check.CheckFailed():
		return StatusCheckFailed
	default:
		return StatusFailure
	}
}
