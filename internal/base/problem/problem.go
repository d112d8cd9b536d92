// Package problem defines errors that are meant for the user: they name the problem, a remedy, and
// whether the user's input is the cause.
//
// An error type can provide the same without importing this package, by implementing Hint() string
// (the remedy) or Invalid() bool (the input is wrong).
package problem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Error is an error with advice for the user.
type Error struct {
	err     error
	hint    string
	invalid bool
}

// Error returns the text of the error, without the hint.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that the hint was added to.
func (e *Error) Unwrap() error { return e.err }

// Hint returns an instruction for the user. It may be empty.
func (e *Error) Hint() string { return e.hint }

// Invalid reports whether the user's input is wrong.
func (e *Error) Invalid() bool { return e.invalid }

// Invalidf returns an error about the user's input, formatted as fmt.Errorf does. hint may be
// empty.
func Invalidf(hint, format string, args ...any) error {
	return &Error{err: fmt.Errorf(format, args...), hint: hint, invalid: true}
}

// Errorf returns an error with a hint, formatted as fmt.Errorf does. The input is not at fault.
func Errorf(hint, format string, args ...any) error {
	return &Error{err: fmt.Errorf(format, args...), hint: hint}
}

// WithHint adds a hint to err and keeps its text and its kind. It returns nil for nil.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Error{err: err, hint: hint, invalid: IsInvalid(err)}
}

// ReadFile reads a file that the user named. what describes the file or its flag. If name is empty,
// ReadFile returns nil.
func ReadFile(what, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, Invalidf("", "read %s: %w", what, err)
	}
	if len(text) == 0 {
		return nil, Invalidf("", "read %s: %s is empty", what, name)
	}
	return text, nil
}

// NodeFile returns the error of an operation on a node's file, with the path on the node instead of
// the path in err, and with a hint if permission is denied. It returns nil for nil.
func NodeFile(operation, path string, err error) error {
	if err == nil {
		return nil
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	err = fmt.Errorf("%s %s: %w", operation, path, err)
	if errors.Is(err, fs.ErrPermission) {
		return WithHint(err, "run as root on the control-plane node")
	}
	return err
}

// IsInvalid reports whether the user's input is wrong, according to the outermost error in err's
// chain that implements Invalid.
func IsInvalid(err error) bool {
	var e interface{ Invalid() bool }
	return errors.As(err, &e) && e.Invalid()
}

// Hints returns the hints of all errors in err's tree, each once, the innermost first.
func Hints(err error) []string {
	var list []string
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) { //nolint:errorlint // walks the tree node by node
		case interface{ Unwrap() error }:
			if next := e.Unwrap(); next != nil {
				walk(next)
			}
		case interface{ Unwrap() []error }:
			for _, next := range e.Unwrap() {
				walk(next)
			}
		}
		if h, ok := err.(interface{ Hint() string }); ok && h.Hint() != "" &&
			!slices.Contains(list, h.Hint()) { //nolint:errorlint // each node of the tree
			list = append(list, h.Hint())
		}
	}
	if err != nil {
		walk(err)
	}
	return list
}
