package main

import (
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Exit statuses.
const (
	statusSuccess     = 0
	statusFailure     = 1
	statusUsage       = 2 // usage or input error; nothing was changed
	statusCheckFailed = 3 // a check failed, or drift was found
)

// checkFailed is a finding, not a failure.
type checkFailed struct{ text string }

func (e *checkFailed) Error() string     { return e.text }
func (e *checkFailed) CheckFailed() bool { return true }

// exitError is an exit status without a message.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func exitStatus(err error) int {
	var exit *exitError
	var check interface{ CheckFailed() bool }
	switch {
	case err == nil:
		return statusSuccess
	case errors.As(err, &exit):
		return exit.status
	case problem.IsInvalid(err):
		return statusUsage
	case errors.As(err, &check) && check.CheckFailed():
		return statusCheckFailed
	default:
		return statusFailure
	}
}
