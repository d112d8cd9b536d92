package cluster

// Error is a failure with advice. Unwrap gives its cause.
type Error struct {
	// Err says what was tried, on what, and what was seen.
	Err error
	// Try says what to do about it; it may be empty.
	Try string
}

// Error returns the message of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what to do about it.
func (e *Error) Hint() string { return e.Try }
