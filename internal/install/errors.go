package install

// InvalidError is wrong input: a flag, a file, a name. Nothing was touched.
type InvalidError struct {
	Problem string
	// Try says what to do about it; may be empty.
	Try string
}

// Error returns the problem.
func (e *InvalidError) Error() string { return e.Problem }

// Invalid reports that the input was wrong, not the run.
func (e *InvalidError) Invalid() bool { return true }

// Hint returns what to try.
func (e *InvalidError) Hint() string { return e.Try }

// Error is a failure with advice.
type Error struct {
	Err error
	// Try says what to do about it.
	Try string
}

// Error returns the message of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what to try.
func (e *Error) Hint() string { return e.Try }
