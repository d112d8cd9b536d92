package preflight

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func check(name string, warning bool, detail string, err error) Check {
	return Check{Name: name, Description: "about " + name, Warning: warning,
		Run: func(context.Context) (string, error) { return detail, err }}
}

func TestRunAllReportsEveryOutcome(t *testing.T) {
	checks := []Check{
		check("good", false, "all well", nil),
		check("bad", false, "", problem.Errorf("fix it", "it is bad")),
		check("worse", false, "", fmt.Errorf("look: %w", problem.Errorf("fix it", "it is worse"))),
		check("so-so", true, "", errors.New("it could be better")),
		check("hidden", false, "", fmt.Errorf("%w: no permission", ErrUnknown)),
	}
	want := []Outcome{
		{"good", "about good", Passed, "all well", ""},
		{"bad", "about bad", Failed, "it is bad", "fix it"},
		{"worse", "about worse", Failed, "look: it is worse", "fix it"},
		{"so-so", "about so-so", Warned, "it could be better", ""},
		{"hidden", "about hidden", Unknown, "could not be checked: no permission", ""},
	}
	var observed []Outcome
	outcomes, err := RunAll(t.Context(), checks, func(o Outcome) { observed = append(observed, o) })
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Hint() != "fix it" || !failed.CheckFailed() {
		t.Fatalf("error is %v", err)
	}
	if want := "2 checks failed:\n  bad: it is bad\n  worse: look: it is worse"; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestRunAllOfOneFailureIsOneLine(t *testing.T) {
	_, err := RunAll(t.Context(), []Check{check("bad", false, "", problem.Errorf("", "it is bad"))}, nil)
	if err == nil || err.Error() != "check bad failed: it is bad" {
		t.Errorf("error is %v", err)
	}
}

func TestRunAllWithoutFailures(t *testing.T) {
	outcomes, err := RunAll(t.Context(), []Check{check("so-so", true, "", errors.New("x"))}, nil)
	if err != nil || len(outcomes) != 1 {
		t.Errorf("%v, %v", outcomes, err)
	}
}

func TestRunAllStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stopping := Check{Name: "stopping", Run: func(ctx context.Context) (string, error) { cancel(); return "", ctx.Err() }}
	outcomes, err := RunAll(ctx, []Check{check("first", false, "", nil), stopping, check("never", false, "", nil)}, nil)
	if !errors.Is(err, context.Canceled) || len(outcomes) != 1 {
		t.Errorf("%v, %v", outcomes, err)
	}
}
