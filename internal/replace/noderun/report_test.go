package noderun

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestReportOfASuccessIsRead(t *testing.T) {
	report, err := NewReport(map[string]string{"node": "cp-1"}, nil, []string{"a warning"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := report.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode("a line of the log\n" + string(text))
	if err != nil || read.Err() != nil || string(read.Result) != `{"node":"cp-1"}` {
		t.Errorf("read %+v, %v", read, err)
	}
	if diff := cmp.Diff([]string{"a warning"}, read.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestReportOfAFailureKeepsItsHintsAndItsKind(t *testing.T) {
	for name, c := range map[string]struct {
		failed  error
		invalid bool
	}{
		"a failure":     {failed: problem.WithHint(problem.WithHint(errors.New("the scheduler ended"), "inner"), "outer")},
		"invalid input": {failed: problem.WithHint(problem.Invalidf("inner", "no such image"), "outer"), invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := NewReport(nil, c.failed, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := report.Encode()
			if err != nil {
				t.Fatal(err)
			}
			read, err := Decode(string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := read.Err()
			if got == nil || got.Error() != c.failed.Error() || problem.IsInvalid(got) != c.invalid {
				t.Errorf("got %v, invalid %v", got, problem.IsInvalid(got))
			}
			if diff := cmp.Diff([]string{"inner", "outer"}, problem.Hints(got)); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

// The kubelet truncates longer messages, and a truncated report would not be JSON.
func TestReportFitsInATerminationMessage(t *testing.T) {
	var warnings []string
	for i := range 100 {
		warnings = append(warnings, fmt.Sprintf("warning %d: %s", i, strings.Repeat("w", 90)))
	}
	for name, failed := range map[string]error{
		"many warnings":            errors.New("short"),
		"a long error":             errors.New("begin " + strings.Repeat("é\"", 5000)),
		"a long error in one line": errors.New("begin " + strings.Repeat("\n", 5000)),
	} {
		t.Run(name, func(t *testing.T) {
			report, err := NewReport(nil, failed, warnings)
			if err != nil {
				t.Fatal(err)
			}
			text, err := report.Encode()
			if err != nil || len(text) > maxReport {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			read, err := Decode(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if len(failed.Error()) < 100 {
				last := read.Warnings[len(read.Warnings)-1]
				if read.Error != "short" || len(read.Warnings) < 20 || !strings.Contains(last, "more warnings are in the log") {
					t.Errorf("%d warnings, the last %q", len(read.Warnings), last)
				}
			} else if !strings.HasPrefix(read.Error, "begin ") || !strings.HasSuffix(read.Error, "…") ||
				len(read.Error) < 500 {
				t.Errorf("error %q", read.Error)
			}
			if len(report.Warnings) != len(warnings) {
				t.Error("the report was changed")
			}
		})
	}
}

func TestWhatIsNoReportIsAnError(t *testing.T) {
	for _, message := range []string{"", "panic: x\n\ngoroutine 1", "{}", `{"result":null}`, `{"error":""}`,
		`{"error":"x","unknown":1}`, `[]`} {
		if report, err := Decode(message); err == nil {
			t.Errorf("%q: got %+v", message, report)
		} else if !strings.Contains(err.Error(), strings.TrimSpace(message)) {
			t.Errorf("%q: the message is not in %v", message, err)
		}
	}
}
