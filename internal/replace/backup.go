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

// backUp keeps what is there. What an earlier run left says what the original is.
func (r *replacing) backUp(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	r.former = staticpod.Current(list)
	now, err := r.Files.Read(r.r.Layout.Manifest)
	if err != nil {
		return err
	}
	if !bytes.Equal(now.Data, r.r.Old.Data) {
		return problem.WithHint(fmt.Errorf("back up %s: %w", r.r.Layout.Manifest, staticpod.ErrEdited), "look at the file and run again")
	}
	b := &staticpod.Backup{
		Layout: r.r.Layout.Name, Node: r.r.Node, Pod: r.r.Pod, Namespace: metav1.NamespaceSystem, Container: schedulerContainer,
		SingleFile: r.r.single, HoldsAPI: r.r.holdsAPI, Elects: r.r.elects, Image: r.r.Image, Replacement: r.r.id,
		ConfigDir: r.r.ConfigDir, ConfigFile: r.r.ConfigFile, ConfigHash: r.r.hash, Rules: len(r.r.Rules) > 0,
		Hosts: r.r.hosts, Alone: r.r.alone, Pinned: r.r.pinned,
		Files: []staticpod.Saved{{Path: r.r.Layout.Manifest}},
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

// content collects the files of a backup. The original is the manifest from before
// the first replacement, as long as nobody else wrote it anew since.
func (r *replacing) content(b *staticpod.Backup) (staticpod.Content, error) {
	previous, original := r.r.Old, r.r.Old
	if f := r.former; f != nil {
		m := f.Manifest()
		here := staticpod.Hash(r.r.Old.Data)
		var err error
		switch {
		case here == m.Original, !staticpod.Managed(r.r.Old.Data):
			// The original itself, or one that somebody wrote anew.
		default:
			b.Edited = f.Edited || here != m.Written && here != m.Previous
			if original, err = f.Load(m, staticpod.OriginalCopy); err != nil {
				return staticpod.Content{}, err
			}
			if here == m.Written && f.State == staticpod.Started {
				// Nobody proved what the killed run put there.
				if previous, err = f.Load(m, staticpod.PreviousCopy); err != nil {
					return staticpod.Content{}, err
				}
			}
		}
		b.Rules = b.Rules || f.Rules
	}
	c := staticpod.Content{Original: []*staticpod.File{original}, Previous: []*staticpod.File{previous}, Written: [][]byte{r.r.New.Data}}
	if e := r.r.Env; e != nil {
		b.Files = append(b.Files, staticpod.Saved{Path: envFile})
		first := e.Old
		if f := r.former; f != nil && len(f.Files) > 1 {
			var err error
			if first, err = f.Load(&f.Files[1], staticpod.OriginalCopy); err != nil {
				return c, err
			}
		}
		c.Original, c.Previous, c.Written = append(c.Original, first), append(c.Previous, e.Old), append(c.Written, e.New.Data)
	}
	for _, path := range r.r.copies {
		file, err := r.Files.Read(path)
		if err != nil {
			return c, err
		}
		b.Copies, c.Copies = append(b.Copies, staticpod.Saved{Path: path}), append(c.Copies, file)
	}
	return c, nil
}

func (r *replacing) markUndone(context.Context, error) error {
	if r.backup == nil {
		return nil
	}
	return r.backup.Note(r.backup.Step, staticpod.Undone)
}

func (r *replacing) applyRules(ctx context.Context) error {
	if len(r.r.Rules) == 0 {
		return nil
	}
	_, err := r.Applier.Apply(ctx, r.r.Rules)
	return err
}

// removeRules removes them unless an earlier replacement, here or elsewhere, may
// need them.
func (r *replacing) removeRules(ctx context.Context, _ error) error {
	if len(r.r.Rules) == 0 || r.former != nil {
		return nil
	}
	return r.dropRules(ctx, r.r.Pod)
}

func (r *replacing) writeConfiguration(context.Context) error {
	mode := r.r.Old.Mode & 0o600
	if !r.r.single {
		mode = 0o600
	}
	if mode == 0 || r.userOf() {
		mode = 0o644
	}
	if err := r.Files.Write(r.r.ConfigFile, &staticpod.File{Data: r.r.Configuration, Mode: mode}); err != nil {
		return err
	}
	if r.r.Env == nil {
		return nil
	}
	return r.Files.Write(envFile, r.r.Env.New)
}

func (r *replacing) removeConfiguration(context.Context, error) error {
	var failed error
	if e := r.r.Env; e != nil {
		failed = r.Files.Write(envFile, e.Old)
	}
	return errors.Join(failed, r.dropConfigurations(r.r.ConfigDir, r.r.Layout.Manifest))
}

func (r *replacing) markReplaced(context.Context) error {
	return r.backup.Note("mark replaced", staticpod.Replaced)
}

// tidy closes what earlier runs left open, and removes what nobody needs.
func (r *replacing) tidy(context.Context) error {
	list, err := staticpod.Backups(r.Files)
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.ID != r.backup.ID && (b.State == staticpod.Started || b.State == staticpod.Replaced) {
			err = errors.Join(err, b.Note(b.Step, staticpod.Superseded))
		}
	}
	return errors.Join(err, staticpod.Prune(list, keepBackups), r.swapper(r.r.single).Tidy(r.r.Layout.Manifest),
		r.dropConfigurations(r.r.ConfigDir, r.r.Layout.Manifest))
}
