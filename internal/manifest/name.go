package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Error says what is wrong with what was given for a scheduler, and what to give
// instead.
type Error struct {
	Message string
	Try     string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Invalid marks the error as one of the input, not of the machine or cluster.
func (e *Error) Invalid() bool { return true }

// Hint returns what to give instead, or "".
func (e *Error) Hint() string { return e.Try }

func invalid(try, format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...), Try: try}
}

// ValidateName says whether a scheduler may be called so. The name becomes that
// of objects and a label's value, so it is a DNS label; and it is none of those
// that the cluster uses itself: default-scheduler is the name that pods have
// without asking, kube-scheduler the lease of the default scheduler, and default
// the account of pods that name none.
func ValidateName(name string) error {
	switch name {
	case "default-scheduler", "kube-scheduler", "default":
		return invalid("choose another name, such as my-scheduler",
			"scheduler name %q is one that the cluster uses itself", name)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return invalid("use lower-case letters, digits and '-', 63 at most, such as my-scheduler",
			"scheduler name %q is not a DNS label: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
