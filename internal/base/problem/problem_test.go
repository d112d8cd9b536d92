package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestIsInvalid(t *testing.T) {
	invalid := problem.Invalidf("use another", "--port %d", 0)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nil":                         {nil, false},
		"plain":                       {errors.New("x"), false},
		"hint only":                   {problem.Errorf("try again", "x"), false},
		"invalid":                     {invalid, true},
		"wrapped":                     {fmt.Errorf("read file: %w", invalid), true},
		"invalid with another hint":   {problem.WithHint(invalid, "see --help"), true},
		"joined with a plain error":   {errors.Join(errors.New("x"), invalid), true},
		"plain with a hint afterward": {problem.WithHint(errors.New("x"), "see --help"), false},
	} {
		if got := problem.IsInvalid(c.err); got != c.want {
			t.Errorf("%s: IsInvalid(%v) = %t, want %t", name, c.err, got, c.want)
		}
	}
}

func TestHintsAreInnermostFirstAndEachOnce(t *testing.T) {
	inner := problem.Errorf("inner", "x")
	err := errors.Join(problem.WithHint(fmt.Errorf("y: %w", inner), "outer"), problem.WithHint(inner, "inner"))
	if diff := cmp.Diff([]string{"inner", "outer"}, problem.Hints(err)); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	if problem.WithHint(nil, "x") != nil {
		t.Error("WithHint(nil) is an error")
	}
}
