package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// backUp saves the files that the replacement changes. Open backups from earlier runs have the
// original.
func (r *replaceRun) backUp(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	r.former = staticpod.Open(list)
	p := r.plan
	current, err := r.Files.Read(p.Layout.Manifest)
	if err != nil {
		return err
	}
	if !bytes.Equal(current.Data, p.Old.Data) {
		return problem.WithHint(fmt.Errorf("back up %s: %w", p.Layout.Manifest, staticpod.ErrEdited),
			"inspect the file and run again")
	}
	b := &staticpod.Backup{
		Layout: p.Layout.Name, Node: p.Node, Pod: p.Pod, Namespace: metav1.NamespaceSystem, Container: schedulerContainer,
		SingleFile: p.Layout.SingleFile, HoldsAPI: p.HoldsAPI, Elects: p.Elects, Image: p.Image, Replacement: p.ID,
		ConfigDir: p.Layout.ConfigDir, ConfigFile: p.ConfigFile, ConfigHash: p.ConfigHash, Rules: len(p.Objects) > 0,
		Alone: p.Alone, Pinned: p.Pinned, Files: []staticpod.Saved{{Path: p.Layout.Manifest}},
	}
	content, err := r.content(b)
	if err != nil {
		return err
	}
	if err := b.Create(r.Files, r.Now(), content); err != nil {
		return err
	}
	r.backup = b
	r.manifest = &change{swapper: r.swapper(p.Layout.SingleFile), saved: b.Manifest(), old: p.Old, next: p.New}
	if e := p.Env; e != nil {
		r.env = &change{swapper: r.swapper(false), saved: b.File(p.Layout.EnvFile), old: e.Old, next: e.New}
	}
	return nil
}

// content collects a backup's files.
func (r *replaceRun) content(b *staticpod.Backup) (c staticpod.Content, err error) {
	add := func(saved *staticpod.Saved, old *staticpod.File, managed bool) (previous *staticpod.File, err error) {
		original, previous, err := r.originals(saved, old, managed)
		c.Original, c.Previous = append(c.Original, original), append(c.Previous, previous)
		return previous, err
	}
	old := r.plan.Old
	c.Record = r.plan.Record
	if _, err := add(b.Manifest(), old, staticpod.Managed(old.Data)); err != nil {
		return c, err
	}
	c.Written = [][]byte{r.plan.New.Data}
	b.Rules = b.Rules || len(r.former) > 0 && r.former[0].Rules
	if err := r.keepEnv(); err != nil {
		return c, err
	}
	if e := r.plan.Env; e != nil {
		b.Files = append(b.Files, staticpod.Saved{Path: r.plan.Layout.EnvFile})
		previous, err := add(&b.Files[1], e.Old, bytes.Contains(e.Old.Data, []byte(configStem)))
		if err != nil {
			return c, err
		}
		if e.New == nil {
			e.New = previous
		}
		c.Written = append(c.Written, e.New.Data)
	}
	for _, path := range r.plan.Copies {
		file, err := r.Files.Read(path)
		if err != nil {
			return c, err
		}
		b.Copies, c.Copies = append(b.Copies, staticpod.Saved{Path: path}), append(c.Copies, file)
	}
	return c, nil
}

// keepEnv adds the node agent's settings to a plan that does not change them, if an earlier run
// did: restore has to know them.
func (r *replaceRun) keepEnv() error {
	file := r.plan.Layout.EnvFile
	if r.plan.Env != nil || len(r.former) == 0 || r.former[0].File(file) == nil {
		return nil
	}
	current, err := r.Files.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.plan.Env = &EnvChange{Old: current}
	return err
}

// originals returns the file from before the first replacement, unless another program rewrote it
// since, and the last one that is known to work. managed reports whether pmk-sched wrote the
// current one or a part of it.
func (r *replaceRun) originals(saved *staticpod.Saved, current *staticpod.File,
	managed bool) (original, previous *staticpod.File, err error) {
	if len(r.former) == 0 {
		return current, current, nil
	}
	f, hash := r.former[0], staticpod.Hash(current.Data)
	was := f.File(saved.Path)
	if was == nil || hash == was.Original || !managed {
		return current, current, nil // the original itself, or a rewritten one
	}
	saved.Edited = was.Edited || !staticpod.Knows(r.former, saved.Path, current.Data)
	if original, err = f.Load(was, staticpod.OriginalCopy); err != nil {
		return nil, nil, err
	}
	for _, b := range r.former {
		if wrote := b.File(saved.Path); b.State == staticpod.Started && wrote != nil && wrote.Written == hash {
			// The killed run did not verify the file that it wrote. It verified its previous copy.
			previous, err = b.Load(wrote, staticpod.PreviousCopy)
			return original, previous, err
		}
	}
	return original, current, nil
}

// markUndone closes this run's backup. If the manifest from before the killed runs is in place, it
// closes their backups too. After a failed undo it does nothing, so that restore can finish.
func (r *replaceRun) markUndone(context.Context, error) error {
	if r.backup == nil || r.undoFailed {
		return nil
	}
	current, _, err := r.toRevert(r.manifest)
	reverted := err == nil && current == nil
	if errors.Is(err, staticpod.ErrEdited) {
		err = nil // the swap did not happen because of that
	}
	list, e := staticpod.Backups(r.Files)
	err = errors.Join(err, e, r.tidy(r.plan.Layout))
	for _, b := range list {
		switch {
		case b.ID == r.backup.ID, b.State == staticpod.Started && reverted:
			err = errors.Join(err, b.Note(b.Step, staticpod.Undone))
		case b.State == staticpod.Started:
			r.unfinished = true
		}
	}
	if err != nil {
		r.Warn(fmt.Sprintf(
			"the files of this node are restored, but the journal is not closed; run `pmk-sched restore` to do that: %v", err))
	}
	return nil
}

func (r *replaceRun) applyObjects(ctx context.Context) error {
	if len(r.plan.Objects) == 0 {
		return nil
	}
	_, err := r.Applier.Apply(ctx, r.plan.Objects)
	return err
}

// removeObjects deletes the objects unless a replacement, on this node or another, may need them.
func (r *replaceRun) removeObjects(ctx context.Context, _ error) error {
	if n := len(r.former); !r.backup.Rules || n > 0 && r.former[n-1].State == staticpod.Replaced {
		return nil
	}
	current, err := r.Files.Read(r.plan.Layout.Manifest)
	if err != nil || staticpod.Managed(current.Data) {
		return err
	}
	return r.deleteObjects(ctx, r.plan.Pod)
}

func (r *replaceRun) writeConfiguration(context.Context) error {
	if err := r.Files.Write(r.plan.ConfigFile,
		&staticpod.File{Data: r.plan.Configuration, Mode: r.plan.ConfigMode}); err != nil {
		return err
	}
	if r.env == nil {
		return nil
	}
	return r.env.apply(r.backup)
}

func (r *replaceRun) removeConfiguration(context.Context, error) error {
	return errors.Join(r.revertEnv(), r.removeStaleConfigurations(r.plan.Layout))
}

// revertEnv restores the node agent's settings.
func (r *replaceRun) revertEnv() error {
	if r.env == nil {
		return nil
	}
	current, previous, err := r.toRevert(r.env)
	if err != nil || current == nil {
		return r.env.unlessEdited(err)
	}
	return r.env.revert(current, previous)
}

// markReplaced does not fail, because that would undo a scheduler that works.
func (r *replaceRun) markReplaced(context.Context) error {
	r.notMarked = r.backup.Note("mark replaced", staticpod.Replaced)
	return nil
}

// cleanUp removes files that are not needed any more, and closes the backups from earlier runs.
func (r *replaceRun) cleanUp(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	layout := r.plan.Layout
	failed := errors.Join(staticpod.Prune(list, keepBackups), r.tidy(layout), r.removeStaleConfigurations(layout))
	if r.notMarked != nil { // there may be space for it now
		if err := r.backup.Note("mark replaced", staticpod.Replaced); err != nil {
			return errors.Join(failed, err)
		}
	}
	for _, b := range list {
		if b.ID != r.backup.ID && (b.State == staticpod.Started || b.State == staticpod.Replaced) {
			failed = errors.Join(failed, b.Note(b.Step, staticpod.Superseded))
		}
	}
	return failed
}
