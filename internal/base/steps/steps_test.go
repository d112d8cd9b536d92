package steps

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script records the calls of its steps.
type script struct {
	fails map[string]bool // "do b", "undo a"
	calls []string
	onDo  map[string]func()
}

func (s *script) act(what string) error {
	s.calls = append(s.calls, what)
	if f := s.onDo[what]; f != nil {
		f()
	}
	if s.fails[what] {
		return errors.New(what + " failed")
	}
	return nil
}

func (s *script) step(name string, more ...string) Step {
	st := Step{Name: name, Do: func(context.Context) error { return s.act("do " + name) }}
	for _, m := range more {
		switch m {
		case "undo":
			st.Undo = func(context.Context, error) error { return s.act("undo " + name) }
		case "always":
			st.Always = func(context.Context) error { return s.act("always " + name) }
		case "commit":
			st.Commit = true
		}
	}
	return st
}

func TestFailureUndoesStepsInReverse(t *testing.T) {
	tests := map[string]struct {
		fails    []string
		want     []string
		contains []string
	}{
		"nothing fails": {want: []string{"do a", "do b", "do c", "do d", "always a"}},
		"the first":     {fails: []string{"do a"}, want: []string{"do a", "always a"}, contains: []string{"a: do a failed"}},
		"one that got half-way is undone too": {
			fails: []string{"do b"}, want: []string{"do a", "do b", "undo b", "always a"}, contains: []string{"b: do b failed"},
		},
		"one after the commit undoes nothing before it": {fails: []string{"do d"},
			want: []string{"do a", "do b", "do c", "do d", "always a"}},
		"the commit itself": {fails: []string{"do c"},
			want: []string{"do a", "do b", "do c", "undo b", "always a"}},
		"undo fails too": {
			fails: []string{"do c", "undo b"}, want: []string{"do a", "do b", "do c", "undo b", "always a"},
			contains: []string{"c: do c failed", "undo b: undo b failed", ErrUndo.Error()},
		},
		"the end fails after success": {
			fails: []string{"always a"}, want: []string{"do a", "do b", "do c", "do d",
				"always a"}, contains: []string{"end of a: always a failed"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{fails: map[string]bool{}}
			for _, f := range tt.fails {
				s.fails[f] = true
			}
			err := Run(t.Context(), []Step{s.step("a", "always"), s.step("b", "undo"), s.step("c", "commit"), s.step("d")}, nil)
			if diff := cmp.Diff(tt.want, s.calls); diff != "" {
				t.Errorf("wrong order (-want +got):\n%s", diff)
			}
			if (err != nil) != (len(tt.fails) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, text := range tt.contains {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not contain %q: %v", text, err)
				}
			}
		})
	}
}

func TestInterruptedSequenceUndoesWithOpenContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{onDo: map[string]func(){"do b": cancel}}
	b := s.step("b")
	b.Undo = func(ctx context.Context, cause error) error {
		if ctx.Err() != nil {
			t.Error("undo gets a context that has ended")
		}
		if !errors.Is(cause, context.Canceled) {
			t.Errorf("undo gets the cause %v", cause)
		}
		return s.act("undo b")
	}
	err := Run(ctx, []Step{s.step("a"), b, s.step("c")}, nil)
	if diff := cmp.Diff([]string{"do a", "do b", "undo b"}, s.calls); diff != "" {
		t.Errorf("wrong order (-want +got):\n%s", diff)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v is not the context's", err)
	}
}

func TestEveryStepIsObserved(t *testing.T) {
	s := &script{fails: map[string]bool{"do b": true}}
	var seen []string
	observer := func(name string) func(error) {
		seen = append(seen, "begin "+name)
		return func(err error) {
			seen = append(seen, map[bool]string{true: "done ", false: "failed "}[err == nil]+name)
		}
	}
	_ = Run(t.Context(), []Step{s.step("a", "undo"), s.step("b")}, observer)
	want := []string{"begin a", "done a", "begin b", "failed b", "begin undo a", "done undo a"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("wrong order (-want +got):\n%s", diff)
	}
}

func TestSlowUndoLeavesTimeForAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{fails: map[string]bool{"do b": true}}
		a, b := s.step("a", "undo"), s.step("b")
		a.Always = func(ctx context.Context) error { return ctx.Err() }
		b.Undo = func(ctx context.Context, _ error) error {
			<-ctx.Done()
			return ctx.Err()
		}
		a.Undo = func(ctx context.Context, _ error) error { return errors.Join(ctx.Err(), s.act("undo a")) }
		err := Run(t.Context(), []Step{a, b}, nil)
		if diff := cmp.Diff([]string{"do a", "do b", "undo a"}, s.calls); diff != "" {
			t.Errorf("wrong order (-want +got):\n%s", diff)
		}
		if err == nil || strings.Contains(err.Error(), "undo a:") || strings.Contains(err.Error(), "end of a") {
			t.Errorf("what comes after a slow undo has no time left: %v", err)
		}
	})
}

// When the lock of step a is lost, the context of the running step or undo ends, no further step or
// undo runs, and an outer sequence that runs this one as a step is not undone either.
func TestLostLockStopsEverything(t *testing.T) {
	lost := errors.New("the lock is lost")
	tests := map[string]struct {
		during string // the lock is lost in this call
		fails  string
		want   []string
	}{
		"before the first step": {during: "hold a", want: []string{"always a"}},
		"during a step":         {during: "do b", want: []string{"do b", "always a"}},
		"during the last step":  {during: "do c", want: []string{"do b", "do c", "always a"}},
		"during an undo":        {during: "undo c", fails: "do c", want: []string{"do b", "do c", "undo c", "always a"}},
		"during a failing step": {during: "do c", fails: "do c", want: []string{"do b", "do c", "always a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails at once when all goroutines wait
				held, lose := context.WithCancelCause(t.Context())
				s := &script{fails: map[string]bool{tt.fails: true}, onDo: map[string]func(){}}
				act := func(ctx context.Context, what string) error {
					if what == tt.during {
						lose(lost)
						<-ctx.Done()
					}
					return s.act(what)
				}
				step := func(name string) Step {
					return Step{
						Name: name,
						Do:   func(ctx context.Context) error { return act(ctx, "do "+name) },
						Undo: func(ctx context.Context, _ error) error { return act(ctx, "undo "+name) },
					}
				}
				a := Step{Name: "a",
					Hold: func(context.Context) (context.Context, error) {
						if tt.during == "hold a" {
							lose(lost)
						}
						return held, nil
					},
					Always: func(ctx context.Context) error {
						return errors.Join(ctx.Err(), s.act("always a"))
					}}
				outer := Step{Name: "outer",
					Do: func(ctx context.Context) error { return Run(ctx, []Step{a, step("b"), step("c")}, nil) }}
				outer.Undo = func(context.Context, error) error { return s.act("undo outer") }
				err := Run(t.Context(), []Step{outer}, nil)
				if diff := cmp.Diff(tt.want, s.calls); diff != "" {
					t.Errorf("wrong order (-want +got):\n%s", diff)
				}
				if !errors.Is(err, lost) || !errors.Is(err, ErrStopped) {
					t.Errorf("error %v does not have the cause", err)
				}
				if text := err.Error(); strings.Count(text, "undo ") > strings.Count(tt.during, "undo ") {
					t.Errorf("the error names an undo that did not run: %s", text)
				}
			})
		})
	}
}

func TestAnUndoHasItsTimeout(t *testing.T) {
	for want, timeout := range map[time.Duration]time.Duration{UndoTimeout: 0, time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_ = Run(t.Context(), []Step{{Name: "a", UndoTimeout: timeout,
				Do: func(context.Context) error { return errors.New("failed") },
				Undo: func(ctx context.Context, _ error) error {
					<-ctx.Done()
					return ctx.Err()
				},
			}}, nil)
			if took := time.Since(begin); took != want {
				t.Errorf("the undo was stopped after %s, want %s", took, want)
			}
		})
	}
}

func TestALockThatIsNotTakenUndoesTheStepsBefore(t *testing.T) {
	s, taken := &script{}, errors.New("the lock is taken")
	lock := Step{Name: "lock", Hold: func(context.Context) (context.Context, error) { return nil, taken }}
	err := Run(t.Context(), []Step{s.step("a", "undo"), lock, s.step("b")}, nil)
	if diff := cmp.Diff([]string{"do a", "undo a"}, s.calls); diff != "" {
		t.Errorf("wrong order (-want +got):\n%s", diff)
	}
	if !errors.Is(err, taken) || errors.Is(err, ErrUndo) {
		t.Errorf("error %v", err)
	}
}

func TestProgressAndTheEndOfAStepNeedNoObserver(t *testing.T) {
	var texts []string
	Progress(t.Context(), "to nobody")
	Progress(WithProgress(t.Context(), func(text string) { texts = append(texts, text) }), "1 of 2")
	if diff := cmp.Diff([]string{"1 of 2"}, texts); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	failed := errors.New("failed")
	begins := OnStep(func(name string) func(error) {
		texts = append(texts, name)
		return nil
	})
	if err := begins.Do("a", func() error { return failed }); !errors.Is(err, failed) || texts[len(texts)-1] != "a" {
		t.Errorf("a step whose end is not observed: %v, %q", err, texts)
	}
}
