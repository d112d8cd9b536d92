package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Check is one question. It holds everything it needs: no check hands anything to a later one.
type Check struct {
	Name        string // stable, for machines: `namespace-exists`
	Description string // for people, as it is when all is well: `namespace kube-system exists`
	Warning     bool   // a failure is worth knowing, but stops nothing
	// Run returns what a person may want to know of the answer, and an error if the answer is no. An error of ErrUnknown means that
	// the question could not be asked, which is never more than worth knowing.
	Run func(ctx context.Context) (detail string, err error)
}

// ErrUnknown is wrapped by the error of a check that could not be made, by lack of permission above all.
var ErrUnknown = errors.New("could not be checked")

// Status is the answer to a check.
type Status string

// Answers.
const (
	Passed  Status = "passed"
	Warned  Status = "warning"
	Failed  Status = "failed"
	Unknown Status = "unknown" // it could not be made: see the detail
)

// Outcome is an answered check.
type Outcome struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      Status `json:"status"`
	Detail      string `json:"detail,omitempty"` // what was found; when not passed: why
	Hint        string `json:"hint,omitempty"`
}

// FailedError says that checks failed.
type FailedError struct{ Failed []Outcome }

// Error lists the failed checks: on one line if there is one.
func (e *FailedError) Error() string {
	if len(e.Failed) == 1 {
		return fmt.Sprintf("check %s failed: %s", e.Failed[0].Name, e.Failed[0].Detail)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d checks failed:", len(e.Failed))
	for _, o := range e.Failed {
		fmt.Fprintf(&b, "\n  %s: %s", o.Name, o.Detail)
	}
	return b.String()
}

// Hint joins the hints of the failed checks, each once.
func (e *FailedError) Hint() string {
	var hints []string
	seen := map[string]bool{"": true}
	for _, o := range e.Failed {
		if !seen[o.Hint] {
			seen[o.Hint] = true
			hints = append(hints, o.Hint)
		}
	}
	return strings.Join(hints, "; ")
}

// CheckFailed says that the checks were made, and that something does not hold.
func (e *FailedError) CheckFailed() bool { return true }

// RunAll makes the checks in order and tells observe, which may be nil, each outcome. All checks are made even if one fails.
// The error is a [*FailedError] if one failed, or the context's error if it ended; the outcomes so far are returned with either.
func RunAll(ctx context.Context, checks []Check, observe func(Outcome)) ([]Outcome, error) {
	var outcomes, failed []Outcome
	for _, c := range checks {
		outcome := answer(ctx, c)
		if ctx.Err() != nil {
			return outcomes, fmt.Errorf("check %s: %w", c.Name, ctx.Err())
		}
		outcomes = append(outcomes, outcome)
		if outcome.Status == Failed {
			failed = append(failed, outcome)
		}
		if observe != nil {
			observe(outcome)
		}
	}
	if len(failed) > 0 {
		return outcomes, &FailedError{Failed: failed}
	}
	return outcomes, nil
}

func answer(ctx context.Context, c Check) Outcome {
	outcome := Outcome{Name: c.Name, Description: c.Description, Status: Passed}
	detail, err := c.Run(ctx)
	outcome.Detail = detail
	if err == nil {
		return outcome
	}
	outcome.Detail = err.Error()
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		outcome.Hint = hinted.Hint()
	}
	switch {
	case errors.Is(err, ErrUnknown):
		outcome.Status = Unknown
	case c.Warning:
		outcome.Status = Warned
	default:
		outcome.Status = Failed
	}
	return outcome
}
