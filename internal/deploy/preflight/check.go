package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Check is one check. Checks are independent of each other.
type Check struct {
	Name        string // for scripts, does not change: `namespace-exists`
	Description string // the condition that is true if the check passes: `namespace kube-system exists`
	Warning     bool   // a failure is only a warning
	// Run returns details for the user, and an error if the check fails. An error that wraps
	// ErrUnknown means that the check could not run, which is never a failure.
	Run func(ctx context.Context) (detail string, err error)
}

// ErrUnknown is wrapped by the error from a check that could not run, usually for lack of
// permission.
var ErrUnknown = errors.New("could not be checked")

// Status is a check's result.
type Status string

// Statuses of a check.
const (
	Passed  Status = "passed"
	Warned  Status = "warning"
	Failed  Status = "failed"
	Unknown Status = "unknown" // it could not run: see the detail
)

// Outcome is a check that has run.
type Outcome struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      Status `json:"status"`
	Detail      string `json:"detail,omitempty"` // the finding, or why the check did not pass
	Hint        string `json:"hint,omitempty"`
}

// FailedError is returned when checks failed.
type FailedError struct{ Failed []Outcome }

// Error lists the failed checks, a single one on one line.
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

// Hint returns the failed checks' hints, each once.
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

// CheckFailed reports that the checks ran and some failed.
func (e *FailedError) CheckFailed() bool { return true }

// RunAll runs all checks in order, even after one has failed, and calls observe, which may be nil,
// with each outcome. It returns a [*FailedError] if a check failed, or the context's error if ctx
// ended, with the outcomes until then.
func RunAll(ctx context.Context, checks []Check, observe func(Outcome)) ([]Outcome, error) {
	var outcomes, failed []Outcome
	for _, c := range checks {
		outcome := run(ctx, c)
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

func run(ctx context.Context, c Check) Outcome {
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
