package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
)

// backUp saves the files that the replacement changes. Open backups of earlier runs have the original.
func (r *replaceRun) backUp(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	r.former = staticpod.Current(list)
	p := r.plan
	current, err := r.Files.Read(p.Layout.Manifest)
	if err != nil {
		return err
	}
	if !bytes.Equal(current.Data, p.Old.Data) {
		return problem.WithHint(fmt.Errorf("back up %s: %w", p.Layout.Manifest, staticpod.ErrEdited), "inspect the file and run again")
	}
	b := &staticpod.Backup{
		Layout: p.Layout.Name, Node: p.Node, Pod: p.Pod, Namespace: metav1.NamespaceSystem, Container: schedulerContainer,
		SingleFile: p.Layout.SingleFile, HoldsAPI: p.HoldsAPI, Elects: p.Elects, Image: p.Image, Replacement: p.ID,
		ConfigDir: p.Layout.ConfigDir, ConfigFile: p.ConfigFile, ConfigHash: p.ConfigHash, Rules: len(p.Objects) > 0,
		Hosts: p.Hosts, Alone: p.Alone, Pinned: p.Pinned,
		Files: []staticpod.Saved{{Path: p.Layout.Manifest}},
	}
	if f := r.former; f == nil || f.For == r.o.For {
		b.For = r.o.For
	}
	content, err := r.content(b)
	if err != nil {
		return err
	}
	if err := b.Create(r.Files, r.Now(), content); err != nil {
		return err
	}
	r.backup = b
	return nil
}

// content collects the files of a backup.
func (r *replaceRun) content(b *staticpod.Backup) (c staticpod.Content, err error) {
	original, previous, err := r.originals(b)
	if err != nil {
		return c, err
	}
	c = staticpod.Content{Original: []*staticpod.File{original}, Previous: []*staticpod.File{previous}, Written: [][]byte{r.plan.New.Data}}
	if e := r.plan.Env; e != nil {
		b.Files = append(b.Files, staticpod.Saved{Path: r.plan.Layout.EnvFile})
		first := e.Old
		if f := r.former; f != nil && len(f.Files) > 1 {
			if first, err = f.Load(&f.Files[1], staticpod.OriginalCopy); err != nil {
				return c, err
			}
		}
		c.Original, c.Previous, c.Written = append(c.Original, first), append(c.Previous, e.Old), append(c.Written, e.New.Data)
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

// originals returns the manifest from before the first replacement, unless another program rewrote it since, and the last
// manifest that is known to work.
func (r *replaceRun) originals(b *staticpod.Backup) (original, previous *staticpod.File, err error) {
	original, previous = r.plan.Old, r.plan.Old
	f := r.former
	if f == nil {
		return original, previous, nil
	}
	b.Rules = b.Rules || f.Rules
	m, current := f.Manifest(), staticpod.Hash(r.plan.Old.Data)
	if current == m.Original || !staticpod.Managed(r.plan.Old.Data) {
		return original, previous, nil // the original itself, or a rewritten one
	}
	b.Edited = f.Edited || current != m.Written && current != m.Previous
	if original, err = f.Load(m, staticpod.OriginalCopy); err != nil {
		return nil, nil, err
	}
	if current == m.Written && f.State == staticpod.Started {
		// The killed run did not verify what it wrote.
		previous, err = f.Load(m, staticpod.PreviousCopy)
	}
	return original, previous, err
}

func (r *replaceRun) markUndone(context.Context, error) error {
	if r.backup == nil {
		return nil
	}
	return r.backup.Note(r.backup.Step, staticpod.Undone)
}

func (r *replaceRun) applyObjects(ctx context.Context) error {
	if len(r.plan.Objects) == 0 {
		return nil
	}
	_, err := r.Applier.Apply(ctx, r.plan.Objects)
	return err
}

// removeObjects deletes the objects unless an earlier replacement, of this node or another, may need them.
func (r *replaceRun) removeObjects(ctx context.Context, _ error) error {
	if len(r.plan.Objects) == 0 || r.former != nil {
		return nil
	}
	return r.deleteObjects(ctx, r.plan.Pod)
}

func (r *replaceRun) writeConfiguration(context.Context) error {
	if err := r.Files.Write(r.plan.ConfigFile, &staticpod.File{Data: r.plan.Configuration, Mode: r.plan.ConfigMode}); err != nil {
		return err
	}
	if r.plan.Env == nil {
		return nil
	}
	return r.Files.Write(r.plan.Layout.EnvFile, r.plan.Env.New)
}

func (r *replaceRun) removeConfiguration(context.Context, error) error {
	var failed error
	if e := r.plan.Env; e != nil {
		failed = r.Files.Write(r.plan.Layout.EnvFile, e.Old)
	}
	return errors.Join(failed, r.removeStaleConfigurations(r.plan.Layout.ConfigDir, r.plan.Layout.Manifest))
}

func (r *replaceRun) markReplaced(context.Context) error {
	return r.backup.Note("mark replaced", staticpod.Replaced)
}

// cleanUp closes the backups of earlier runs, and removes files that are not needed any more.
func (r *replaceRun) cleanUp(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.ID != r.backup.ID && (b.State == staticpod.Started || b.State == staticpod.Replaced) {
			err = errors.Join(err, b.Note(b.Step, staticpod.Superseded))
		}
	}
	layout := r.plan.Layout
	return errors.Join(err, staticpod.Prune(list, keepBackups), r.swapper(layout.SingleFile).Tidy(layout.Manifest),
		r.removeStaleConfigurations(layout.ConfigDir, layout.Manifest))
}
