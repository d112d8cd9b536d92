package main

import (
	"errors"
	"fmt"
	"slices"
)

// Exit statuses.
const (
	statusDone        = 0 // what was asked for is done
	statusFailed      = 1 // it was tried and failed
	statusUsage       = 2 // the command line or a file is wrong; nothing was touched
	statusCheckFailed = 3 // it looked, and something does not hold
)

// usageError is a wrong command line.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string { return e.problem }
func (e *usageError) Invalid() bool { return true }
func (e *usageError) Hint() string  { return e.hint }

func usagef(hint, format string, args ...any) error {
	return &usageError{problem: fmt.Sprintf(format, args...), hint: hint}
}

// checkFailed is a finding, not a failure: `diff` that found a difference, say.
type checkFailed struct{ text string }

func (e *checkFailed) Error() string     { return e.text }
func (e *checkFailed) CheckFailed() bool { return true }

// exitError carries the status of a program that was run for the person.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// exitStatus maps the result of a command to the status of the process. It is
// the only place that does.
func exitStatus(err error) int {
	var ran *exitError
	var invalid interface{ Invalid() bool }
	var holds interface{ CheckFailed() bool }
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &ran):
		return ran.status
	case errors.As(err, &invalid) && invalid.Invalid():
		return statusUsage
	case errors.As(err, &holds) && holds.CheckFailed():
		return statusCheckFailed
	default:
		return statusFailed
	}
}

// hints collects what the errors in err's tree advise, each once: what is nearest
// to the cause first, what is said of the whole last.
func hints(err error) []string {
	var list []string
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() error }:
			if next := e.Unwrap(); next != nil {
				walk(next)
			}
		case interface{ Unwrap() []error }:
			for _, next := range e.Unwrap() {
				walk(next)
			}
		}
		if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" && !slices.Contains(list, h.Hint()) { //nolint:errorlint // each node of the tree is looked at
			list = append(list, h.Hint())
		}
	}
	walk(err)
	return list
}
