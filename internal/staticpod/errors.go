package staticpod

// Error is a failure with advice. Unwrap gives its cause.
type Error struct {
	// Err says what was tried, on what, and what was seen.
	Err error
	// Try says what to do about it; may be empty.
	Try string
	// Input says that what was found cannot be worked with: nothing was touched.
	Input bool
}

// Error returns the message of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what to do about it.
func (e *Error) Hint() string { return e.Try }

// Invalid reports that the input was wrong, not the run.
func (e *Error) Invalid() bool { return e.Input }
