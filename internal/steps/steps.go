// Package steps runs named steps in order, each with its undo.
package steps

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OnStep is called when a step begins; what it returns is called when the step
// ends. It may be nil.
type OnStep func(name string) (done func(err error))

// Step is one thing that Deploy does, with the way back beside it.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
	// undo brings back what was before do, because of cause. It is called also
	// when do itself failed, since do may have got half-way; nil where there is
	// nothing to bring back.
	Undo func(ctx context.Context, cause error) error
	// always runs when the sequence ends, however it ends.
	Always func(ctx context.Context) error
	// commit: once done, what was before is history; a later failure undoes
	// only what comes after.
	Commit bool
}

// Bounds of one undo and of one always, which run also when the caller's context
// has ended. Each has its own time: one that takes long must not leave none for
// the lock's release.
const (
	undoTimeout   = 3 * time.Minute
	alwaysTimeout = 30 * time.Second
)

// ErrUndo marks that the way back failed too.
var ErrUndo = errors.New("what was before could not be brought back")

// Run does the steps in order. When one fails, or ctx ends, the steps done so
// far are undone in reverse. The error joins what failed with what could not be
// undone.
func Run(ctx context.Context, steps []Step, onStep OnStep) (err error) {
	var undo, always []Step
	defer func() {
		if err != nil {
			err = errors.Join(err, undoAll(ctx, undo, err, onStep))
		}
		for i := len(always) - 1; i >= 0; i-- {
			if e := inAnyCase(ctx, alwaysTimeout, always[i].Always); e != nil {
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
		if err := observe(onStep, s.Name, func() error { return s.Do(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if s.Commit {
			undo = nil
		}
	}
	return nil
}

func undoAll(ctx context.Context, steps []Step, cause error, onStep OnStep) error {
	var failed error
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		name := "undo " + s.Name
		err := observe(onStep, name, func() error {
			return inAnyCase(ctx, undoTimeout, func(ctx context.Context) error { return s.Undo(ctx, cause) })
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: %s: %w", ErrUndo, name, err))
		}
	}
	return failed
}

// inAnyCase runs do with a time of its own, also when ctx has ended.
func inAnyCase(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return do(ctx)
}

func observe(onStep OnStep, name string, do func() error) error {
	if onStep == nil {
		return do()
	}
	done := onStep(name)
	err := do()
	if done != nil {
		done(err)
	}
	return err
}
