package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// RestoreOutcome is the result of Restore.
type RestoreOutcome struct {
	// Node is empty if the node's default scheduler is not replaced.
	Node string `json:"node"`
	// Backup is the original's directory.
	Backup string `json:"backup"`
	// Manifest is one of the Manifest constants.
	Manifest string `json:"manifest"`
}

// Values of RestoreOutcome.Manifest.
const (
	ManifestRestored   = "restored"
	ManifestUnchanged  = "unchanged"
	ManifestNotManaged = "no longer managed by pmk-sched, not changed"
)

// EditedError is returned when restoring would lose an edit.
type EditedError struct {
	Path string
	// Diff is the edit since the replacement.
	Diff string
}

// Error names the file and shows the edit.
func (e *EditedError) Error() string {
	return fmt.Sprintf("restore %s: it was edited after the replacement; restoring it loses that edit:\n%s", e.Path,
		e.Diff)
}

// Hint returns an instruction for the user.
func (e *EditedError) Hint() string { return "restore with --force, then make the edit again" }

// restoreRun is one call to Restore.
type restoreRun struct {
	Deps
	force  bool
	unlock func() error
	backup *staticpod.Backup
	// open are the backup and the other open ones.
	open []*staticpod.Backup
	want staticpod.Want
	// files are the files to restore.
	files   []restoredFile
	outcome RestoreOutcome
}

// restoredFile is a file to restore; current is nil if the file is missing.
type restoredFile struct {
	saved             *staticpod.Saved
	current, original *staticpod.File
}

// Restore restores the manifest from before the first replacement byte by byte, and waits until its
// scheduler is ready. Only the waiting needs an API server. If the manifest was edited after the
// replacement, the error is an [*EditedError] unless force is set; if another program rewrote it,
// it is not changed. Restore can be run again after it was killed.
func Restore(ctx context.Context, d Deps, force bool) (*RestoreOutcome, error) {
	r := &restoreRun{Deps: d, force: force}
	if err := steps.Run(ctx, r.steps(), d.OnStep); err != nil {
		return nil, fmt.Errorf("restore the default scheduler: %w", err)
	}
	return &r.outcome, nil
}

func (r *restoreRun) steps() []steps.Step {
	return []steps.Step{
		{Name: "lock", Do: r.lock, Always: r.release},
		{Name: "read the backup", Do: r.readBackup},
		r.ifReplaced(steps.Step{Name: "restore the manifest", Do: r.restore}),
		r.ifReplaced(steps.Step{Name: "wait until it runs", Do: r.wait}),
		r.ifReplaced(steps.Step{Name: "clean up", Do: r.cleanUp}),
		r.ifReplaced(steps.Step{Name: "mark restored", Do: r.mark}),
	}
}

// ifReplaced skips a step if there is nothing to restore.
func (r *restoreRun) ifReplaced(s steps.Step) steps.Step {
	do := s.Do
	s.Do = func(ctx context.Context) error {
		if r.backup == nil {
			return nil
		}
		return do(ctx)
	}
	return s
}

func (r *restoreRun) lock(context.Context) (err error) {
	r.unlock, err = staticpod.Lock(r.Files, r.Holder)
	return err
}

func (r *restoreRun) release(context.Context) error {
	if r.unlock == nil {
		return nil
	}
	return r.unlock()
}

// readBackup decides which files to restore.
func (r *restoreRun) readBackup(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	if r.open = staticpod.Open(list); len(r.open) == 0 {
		return nil
	}
	b := r.open[0]
	r.backup = b
	r.outcome = RestoreOutcome{Node: b.Node, Backup: b.Dir(), Manifest: ManifestRestored}
	for i := range b.Files {
		file, err := r.compare(&b.Files[i])
		if err != nil {
			return err
		}
		if file != nil {
			r.files = append(r.files, *file)
		}
	}
	return nil
}

// compare compares a file with the backup. It returns nil if the file does not have to change.
func (r *restoreRun) compare(s *staticpod.Saved) (*restoredFile, error) {
	original, err := r.backup.Load(s, staticpod.OriginalCopy)
	if err != nil {
		return nil, err
	}
	current, err := r.Files.Read(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &restoredFile{saved: s, original: original}, nil // it was moved away: restoring it loses nothing
	}
	if err != nil {
		return nil, err
	}
	manifest := s == r.backup.Manifest()
	switch {
	case staticpod.Hash(current.Data) == s.Original:
		if manifest {
			r.outcome.Manifest = ManifestUnchanged
		}
		return nil, nil
	case r.force:
	case manifest && !staticpod.Managed(current.Data):
		r.outcome.Manifest = ManifestNotManaged
		return nil, nil
	case s.Edited, !staticpod.Knows(r.open, s.Path, current.Data):
		return nil, r.edited(s, current, original)
	}
	return &restoredFile{saved: s, current: current, original: original}, nil
}

// edited returns an error that shows the edit to a file.
func (r *restoreRun) edited(s *staticpod.Saved, current, original *staticpod.File) error {
	written, err := r.backup.Load(s, staticpod.WrittenCopy)
	if err != nil {
		return err
	}
	if bytes.Equal(written.Data, current.Data) {
		written = original // the edit is older than the last replacement
	}
	return &EditedError{Path: s.Path, Diff: diffOf(s.Path, written.Data, current.Data)}
}

func (r *restoreRun) restore(ctx context.Context) error {
	r.want = staticpod.Want{Settle: restoreSettle, Pinned: r.backup.Pinned}
	for _, f := range r.files {
		single := false
		if f.saved == r.backup.Manifest() {
			single = r.backup.SingleFile
			r.expect(ctx, f)
		}
		if err := r.swapper(single).Swap(f.saved.Path, f.current, f.original); err != nil {
			return err
		}
	}
	return nil
}

// expect sets the expected state of the pod that the kubelet runs from the restored manifest.
func (r *restoreRun) expect(ctx context.Context, f restoredFile) {
	r.want.Replacement = staticpod.Replacement(f.original.Data)
	if f.current == nil {
		return
	}
	seen, err := r.watch(targetOf(r.backup)).Observe(ctx)
	if err == nil && seen.Replacement != "" && seen.Replacement == staticpod.Replacement(f.current.Data) {
		r.want.Before, r.want.Changed = seen, true
	}
}

func (r *restoreRun) wait(ctx context.Context) error {
	if r.outcome.Manifest == ManifestNotManaged {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	_, err := r.watch(targetOf(r.backup)).Wait(ctx, r.want)
	return problem.WithHint(err, "the original manifest is in place; run restore again to check it and to finish")
}

func (r *restoreRun) cleanUp(ctx context.Context) error {
	b := r.backup
	layout := layoutOf(b)
	err := errors.Join(r.removeStaleConfigurations(layout), r.tidy(layout))
	if b.Rules {
		err = errors.Join(err, r.deleteObjects(ctx, b.Pod))
	}
	return err
}

// layoutOf returns a backup's paths as a layout.
func layoutOf(b *staticpod.Backup) inspect.Layout {
	layout, _ := inspect.LayoutNamed(b.Layout)
	layout.Manifest, layout.ConfigDir, layout.SingleFile = b.Manifest().Path, b.ConfigDir, b.SingleFile
	return layout
}

// mark closes this backup and the backups from earlier runs, which have the same original or an
// older one.
func (r *restoreRun) mark(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	for _, b := range list {
		if b.State == staticpod.Started || b.State == staticpod.Replaced {
			err = errors.Join(err, b.Note(b.Step, staticpod.Restored))
		}
	}
	err = errors.Join(err, staticpod.Prune(list, keepBackups))
	return problem.WithHint(err, "the original manifest is in place; run restore again to finish")
}
