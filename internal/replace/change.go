package replace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// change is the change to one file. Its undo is a rename, which needs no free disk space.
type change struct {
	swapper staticpod.Swapper
	saved   *staticpod.Saved
	// old is the file before this run, next the file that this run writes.
	old, next *staticpod.File
	// previous is the staged file that the undo restores. It is nil if there is nothing to undo.
	previous *staticpod.Staged
	// applied reports that next is in place, written by this run or a killed one.
	applied bool
}

// apply stages the previous copy and swaps the new file in.
func (c *change) apply(b *staticpod.Backup) error {
	if c.saved.Previous != c.saved.Written {
		previous, err := b.Load(c.saved, staticpod.PreviousCopy)
		if err != nil {
			return err
		}
		if c.previous, err = c.swapper.Stage(c.saved.Path, previous); err != nil {
			return err
		}
	}
	if !bytes.Equal(c.old.Data, c.next.Data) {
		if err := c.swapper.Swap(c.saved.Path, c.old, c.next); err != nil {
			return err
		}
	}
	c.applied = true
	return nil
}

// unlessEdited drops the error for an edit that kept apply from changing the file: there is nothing
// to undo.
func (c *change) unlessEdited(err error) error {
	if !c.applied && errors.Is(err, staticpod.ErrEdited) {
		return nil
	}
	return err
}

// revert restores the previous copy in place of the current file.
func (c *change) revert(current, previous *staticpod.File) error {
	if c.previous != nil {
		if err := c.previous.Swap(current); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.swapper.Swap(c.saved.Path, current, previous)
}

// toRevert returns the current file and the file to restore. current is nil if the file to restore
// is in place. An edit by another program is an error.
func (r *replaceRun) toRevert(c *change) (current, previous *staticpod.File, err error) {
	if previous, err = r.backup.Load(c.saved, staticpod.PreviousCopy); err != nil {
		return nil, nil, err
	}
	if current, err = r.Files.Read(c.saved.Path); err != nil {
		return nil, nil, err
	}
	switch {
	case bytes.Equal(current.Data, previous.Data):
		return nil, previous, nil
	case !bytes.Equal(current.Data, c.old.Data) && !bytes.Equal(current.Data, c.next.Data):
		return nil, nil, fmt.Errorf("restore %s: %w", c.saved.Path, staticpod.ErrEdited)
	}
	return current, previous, nil
}
