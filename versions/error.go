package versions

import "fmt"

// Error says that a version given by a person, a file or a server cannot be
// used, and what could be given instead.
type Error struct {
	// Message says what was read and what is wrong with it.
	Message string
	// Try is what to give instead; it may be empty.
	Try string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Invalid marks the error as one of the input, not of the machine or cluster.
func (e *Error) Invalid() bool { return true }

// Hint returns what to give instead, or "".
func (e *Error) Hint() string { return e.Try }

func notATag(given, meant string) *Error {
	e := &Error{
		Message: fmt.Sprintf("read release %q: it is not the name of a Kubernetes release", given),
		Try:     "name a release by its tag, with all three numbers: v1.24.3",
	}
	if meant != "" {
		e.Try = fmt.Sprintf("name a release by its tag, with all three numbers: %s", meant)
	}
	return e
}
