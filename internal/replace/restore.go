package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/internal/steps"
)

// RestoreOutcome is what Restore did.
type RestoreOutcome struct {
	// Node is empty when nothing of ours was on the node.
	Node string `json:"node"`
	// Backup is the folder that the original came from.
	Backup string `json:"backup"`
	// Manifest says what became of it: restored, unchanged, or left as it is
	// because it is not ours any more.
	Manifest string `json:"manifest"`
}

// Values of RestoreOutcome.Manifest.
const (
	ManifestRestored  = "restored"
	ManifestUnchanged = "unchanged"
	ManifestNotOurs   = "not ours any more, left as it is"
)

// EditedError says that files were edited since the replacement, and how.
type EditedError struct {
	Path string
	// Since is what changed since the replacement wrote it.
	Since string
}

// Error names the file and shows the edit.
func (e *EditedError) Error() string {
	return fmt.Sprintf("restore %s: somebody edited it since it was replaced; that edit would be lost:\n%s", e.Path, e.Since)
}

// Hint says how to go on.
func (e *EditedError) Hint() string { return "restore with --force, and make the edit again" }

// restoring is one run of Restore.
type restoring struct {
	Deps
	force  bool
	unlock func() error
	backup *staticpod.Backup
	want   staticpod.Want
	// writes are the files to bring back, with what is there now.
	writes  []restoredFile
	outcome RestoreOutcome
}

type restoredFile struct {
	saved     *staticpod.Saved
	here, old *staticpod.File
}

// Restore brings back the manifest from before the first replacement, byte by byte,
// and waits until its scheduler is ready. It needs no API server for the first. A
// manifest that was edited since is an [*EditedError] unless force; one that
// somebody else wrote anew is left alone. It can be run again after it was killed.
func Restore(ctx context.Context, d Deps, force bool) (*RestoreOutcome, error) {
	this := &restoring{Deps: d, force: force}
	if err := steps.Run(ctx, this.steps(), d.OnStep); err != nil {
		return nil, fmt.Errorf("restore the default scheduler: %w", err)
	}
	return &this.outcome, nil
}

func (r *restoring) steps() []steps.Step {
	return []steps.Step{
		{Name: "lock", Do: r.lock, Always: r.release},
		{Name: "look at the backup", Do: r.look},
		r.unlessNone(steps.Step{Name: "bring back the manifest", Do: r.bringBack}),
		r.unlessNone(steps.Step{Name: "wait until it runs", Do: r.wait}),
		r.unlessNone(steps.Step{Name: "remove what was made", Do: r.remove}),
		r.unlessNone(steps.Step{Name: "mark restored", Do: r.mark}),
	}
}

// unlessNone leaves a step out where there is nothing to restore.
func (r *restoring) unlessNone(s steps.Step) steps.Step {
	do := s.Do
	s.Do = func(ctx context.Context) error {
		if r.backup == nil {
			return nil
		}
		return do(ctx)
	}
	return s
}

func (r *restoring) lock(context.Context) (err error) {
	r.unlock, err = staticpod.Lock(r.Files, r.Holder)
	return err
}

func (r *restoring) release(context.Context) error {
	if r.unlock == nil {
		return nil
	}
	return r.unlock()
}

// look decides which files come back.
func (r *restoring) look(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	if r.backup = staticpod.Current(list); r.backup == nil {
		return nil
	}
	b := r.backup
	r.outcome = RestoreOutcome{Node: b.Node, Backup: b.Dir(), Manifest: ManifestRestored}
	for i := range b.Files {
		file, err := r.file(&b.Files[i])
		if err != nil {
			return err
		}
		if file != nil {
			r.writes = append(r.writes, *file)
		}
	}
	return nil
}

// file compares a file with what is known of it; nil: it stays as it is.
func (r *restoring) file(s *staticpod.Saved) (*restoredFile, error) {
	manifest := s == r.backup.Manifest()
	here, err := r.Files.Read(s.Path)
	if err != nil {
		return nil, err
	}
	old, err := r.backup.Load(s, staticpod.OriginalCopy)
	if err != nil {
		return nil, err
	}
	hash := staticpod.Hash(here.Data)
	switch {
	case hash == s.Original:
		if manifest {
			r.outcome.Manifest = ManifestUnchanged
		}
		return nil, nil
	case r.force:
	case manifest && !staticpod.Managed(here.Data):
		r.outcome.Manifest = ManifestNotOurs
		return nil, nil
	case r.backup.Edited && manifest, hash != s.Written && hash != s.Previous:
		written, err := r.backup.Load(s, staticpod.WrittenCopy)
		if err != nil {
			return nil, err
		}
		if r.backup.Edited && manifest && bytes.Equal(written.Data, here.Data) {
			written = old
		}
		return nil, &EditedError{Path: s.Path, Since: staticpod.Diff(written.Data, here.Data)}
	}
	return &restoredFile{saved: s, here: here, old: old}, nil
}

func (r *restoring) watchOf() *staticpod.Watch {
	b := r.backup
	return r.watch(&Plan{
		Layout: cluster.Layout{Name: b.Layout}, Pod: b.Pod, Node: b.Node, holdsAPI: b.HoldsAPI, elects: b.Elects, hosts: b.Hosts, alone: b.Alone,
	})
}

func (r *restoring) bringBack(ctx context.Context) error {
	r.want = staticpod.Want{Settle: backSettle, Pinned: r.backup.Pinned}
	for _, f := range r.writes {
		if f.saved != r.backup.Manifest() {
			if err := r.Files.Write(f.saved.Path, f.old); err != nil {
				return err
			}
			continue
		}
		r.want.Replacement = staticpod.Replacement(f.old.Data)
		if seen, err := r.watchOf().Look(ctx); err == nil && seen.Replacement != "" && seen.Replacement == staticpod.Replacement(f.here.Data) {
			r.want.Before, r.want.Changed = seen, true
		}
		if err := r.swapper(r.backup.SingleFile).Swap(f.saved.Path, f.here.Data, f.old); err != nil {
			return err
		}
	}
	return nil
}

func (r *restoring) wait(ctx context.Context) error {
	if r.outcome.Manifest == ManifestNotOurs {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, backTimeout)
	defer cancel()
	if _, err := r.watchOf().Wait(ctx, r.want); err != nil {
		return problem.WithHint(err, "the old manifest is in place; run restore again to look at it and to finish")
	}
	return nil
}

func (r *restoring) remove(ctx context.Context) error {
	b := r.backup
	err := errors.Join(r.dropConfigurations(b.ConfigDir, b.Manifest().Path), r.swapper(b.SingleFile).Tidy(b.Manifest().Path))
	if b.Rules {
		err = errors.Join(err, r.dropRules(ctx, b.Pod))
	}
	return err
}

// mark closes this backup and those of runs before it: all of them had the same
// original, or an older one.
func (r *restoring) mark(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	for _, b := range list {
		if b.State == staticpod.Started || b.State == staticpod.Replaced {
			err = errors.Join(err, b.Note(b.Step, staticpod.Restored))
		}
	}
	return errors.Join(err, staticpod.Prune(list, keepBackups))
}
