// Package steps runs named steps in order, each with its undo.
package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// OnStep is called when a step starts; the function that it returns is called when the step ends.
// Both may be nil.
type OnStep func(name string) (done func(err error))

// Do runs do as a step.
func (o OnStep) Do(name string, do func() error) error {
	if o == nil {
		return do()
	}
	done := o(name)
	err := do()
	if done != nil {
		done(err)
	}
	return err
}

// Step is one step of a sequence, with its undo.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
	// Hold takes the place of Do for a step that takes a lock. The context that it returns ends when
	// the lock is lost, with the reason as its cause: then the steps after it end too, and nothing is
	// undone, because another run may be working on the same. At most one step of a sequence has it.
	Hold func(ctx context.Context) (held context.Context, err error)
	// Undo restores the state from before Do, because of cause. It is also called if Do itself
	// failed, which may have done a part. It is nil if there is nothing to restore.
	Undo func(ctx context.Context, cause error) error
	// UndoTimeout bounds Undo. The default is [UndoTimeout].
	UndoTimeout time.Duration
	// Always runs when the sequence ends, also after a failure.
	Always func(ctx context.Context) error
	// Commit reports that a later failure does not undo this step and the steps before it.
	Commit bool
}

// UndoTimeout bounds one Undo, which also runs when the caller's context has ended. Always has its
// own timeout, so that a slow Undo leaves time to release the lock.
const (
	UndoTimeout   = 3 * time.Minute
	alwaysTimeout = 30 * time.Second
)

// ErrUndo is returned when an undo fails too.
var ErrUndo = errors.New("the former state could not be restored")

// ErrStopped is returned when a lock was lost. No further step is undone then, also not in a
// sequence that runs this one as a step.
var ErrStopped = errors.New("stopped without restoring the former state")

// Run does the steps in order. When one fails, or ctx ends, the steps up to then are undone in
// reverse. The error joins the failure and the errors of the undos.
func Run(ctx context.Context, steps []Step, onStep OnStep) (err error) {
	var undo, always []Step
	none := context.WithoutCancel(ctx)
	held := none
	defer func() {
		if err != nil && !errors.Is(err, ErrStopped) {
			err = errors.Join(err, undoAll(ctx, held, undo, err, onStep))
		}
		for i := len(always) - 1; i >= 0; i-- {
			if e := detached(ctx, alwaysTimeout, always[i].Always); e != nil && !errors.Is(err, e) {
				err = errors.Join(err, fmt.Errorf("end of %s: %w", always[i].Name, e))
			}
		}
	}()
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if s.Undo != nil {
			undo = append(undo, s)
		}
		if s.Always != nil {
			always = append(always, s)
		}
		err := onStep.Do(s.Name, func() (err error) {
			if s.Hold == nil {
				return within(ctx, held, s.Do)
			}
			if held, err = s.Hold(ctx); err != nil {
				held = none
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if s.Commit {
			undo = nil
		}
	}
	return nil
}

// within runs do in ctx until held ends. It then returns why held has ended.
func within(ctx, held context.Context, do func(context.Context) error) error {
	if held.Err() != nil {
		return fmt.Errorf("%w: %w", ErrStopped, context.Cause(held))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(held, func() { cancel(context.Cause(held)) })()
	err := do(ctx)
	if held.Err() != nil {
		return fmt.Errorf("%w: %w", ErrStopped, context.Cause(held))
	}
	return err
}

func undoAll(ctx, held context.Context, steps []Step, cause error, onStep OnStep) error {
	var failed error
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		name := "undo " + s.Name
		err := onStep.Do(name, func() error {
			return detached(ctx, cmp.Or(s.UndoTimeout, UndoTimeout), func(ctx context.Context) error {
				return within(ctx, held, func(ctx context.Context) error { return s.Undo(ctx, cause) })
			})
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: %s: %w", ErrUndo, name, err))
		}
		if errors.Is(err, ErrStopped) {
			break
		}
	}
	return failed
}

// detached runs do with a separate timeout, even if ctx has ended.
func detached(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return do(ctx)
}

type progressKey struct{}

// WithProgress returns a context in which Progress calls report.
func WithProgress(ctx context.Context, report func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports how far the running step is, such as "compile kubelet: 412 of 1,903 packages".
// Without WithProgress it does nothing.
func Progress(ctx context.Context, text string) {
	if report, ok := ctx.Value(progressKey{}).(func(string)); ok {
		report(text)
	}
}
