package versions

import "fmt"

// Error is an invalid version in the input, with a suggestion.
type Error struct {
	// Message is the version and the problem with it.
	Message string
	// Try is the suggestion; it may be empty.
	Try string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Invalid reports that the input is wrong.
func (e *Error) Invalid() bool { return true }

// Hint returns the suggestion, or "".
func (e *Error) Hint() string { return e.Try }

func notATag(given, meant string) *Error {
	e := &Error{
		Message: fmt.Sprintf("invalid release %q: not a Kubernetes release", given),
		Try:     "use the tag of a release: v1.24.3",
	}
	if meant != "" {
		e.Try = fmt.Sprintf("use the tag of a release: %s", meant)
	}
	return e
}
