//go:build linux

package lab

import (
	"errors"
	"fmt"
)

// ErrNotFound is wrapped by the errors for a lab that does not exist.
var ErrNotFound = errors.New("no such lab")

// ErrExists is wrapped by the error of Up for a lab that already exists.
var ErrExists = errors.New("lab exists already")

// inputError is an error caused by what the caller was given.
type inputError struct {
	err  error
	hint string
}

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }
func (e *inputError) Invalid() bool { return true }
func (e *inputError) Hint() string  { return e.hint }

func invalid(hint, format string, args ...any) error {
	return &inputError{err: fmt.Errorf(format, args...), hint: hint}
}

// hintError is a failure with a word on what to try.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }
func (e *hintError) Hint() string  { return e.hint }
