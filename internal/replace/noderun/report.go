package noderun

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// maxReport limits the part of a termination message that the kubelet keeps (pkg/kubelet/container,
// MaxContainerTerminationMessageLength).
const maxReport = 4096

// Report is pmk-sched's result on a node.
type Report struct {
	// Result is the command's outcome. It is empty if the command failed.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the reason why it failed, with Hints.
	Error string   `json:"error,omitempty"`
	Hints []string `json:"hints,omitempty"`
	// Invalid reports that the request is the cause, and that nothing was changed.
	Invalid  bool     `json:"invalid,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// NewReport returns a command's report.
func NewReport(result any, failed error, warnings []string) (*Report, error) {
	r := &Report{Warnings: warnings}
	if failed != nil {
		r.Error, r.Hints, r.Invalid = failed.Error(), problem.Hints(failed), problem.IsInvalid(failed)
		return r, nil
	}
	var err error
	r.Result, err = json.Marshal(result)
	return r, err
}

// Encode returns the report as one line that fits in a termination message: warnings are left out
// first, then the end of the error.
func (r Report) Encode() ([]byte, error) {
	left := 0
	for {
		shown := r
		if left > 0 {
			shown.Warnings = append(r.Warnings[:len(r.Warnings):len(r.Warnings)],
				fmt.Sprintf("%d more warnings are in the log of the pod", left))
		}
		text, err := json.Marshal(shown)
		if err != nil || len(text) < maxReport {
			return append(text, '\n'), err
		}
		switch n := len(r.Warnings); {
		case n > 0:
			r.Warnings = r.Warnings[:n-1]
			left++
		case len(r.Error) > 1:
			left, r.Error = 0, shorten(r.Error)
		default:
			return nil, fmt.Errorf("write the report: %d bytes do not fit in a termination message", len(text))
		}
	}
}

// shorten removes the last tenth of a text.
func shorten(text string) string {
	const mark = "…"
	text = strings.TrimSuffix(text, mark)
	end := len(text) * 9 / 10
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// Decode reads the report in a termination message.
func Decode(message string) (*Report, error) {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	r := &Report{}
	decoder := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil || r.Error == "" && (len(r.Result) == 0 || string(r.Result) == "null") {
		return nil, fmt.Errorf("it ended without a report: %s", strings.TrimSpace(message))
	}
	return r, nil
}

// Err returns the error in the report, nil if the command succeeded.
func (r *Report) Err() error {
	if r.Error == "" {
		return nil
	}
	err := errors.New(r.Error)
	if r.Invalid {
		err = problem.Invalidf("", "%s", r.Error)
	}
	for _, hint := range r.Hints {
		err = problem.WithHint(err, hint)
	}
	return err
}
