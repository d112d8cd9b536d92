package replace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Ensure calls Run unless this node already has the replacement, that is, its files, its pod and
// its journal agree. In that case it changes nothing, and the outcome has no backup.
func Ensure(ctx context.Context, d Deps, info *inspect.Info, o Options) (*Outcome, error) {
	r := &replaceRun{Deps: d, o: o, info: info}
	if err := steps.Run(ctx, []steps.Step{{Name: "compare", Do: r.check}}, d.OnStep); err != nil {
		return nil, fmt.Errorf("replace the default scheduler: %w", err)
	}
	done, err := d.isDone(r.plan)
	if err != nil {
		return nil, fmt.Errorf("compare the default scheduler with the wanted one: %w", err)
	}
	if done {
		return &Outcome{Node: r.plan.Node, Image: r.plan.Image}, nil
	}
	return Run(ctx, d, info, o)
}

// isDone reports whether nothing is left to do for a plan.
func (d Deps) isDone(plan *Plan) (bool, error) {
	if !bytes.Equal(plan.Old.Data, plan.New.Data) || plan.Before.Replacement != plan.ID || !plan.Before.Ready {
		return false, nil
	}
	if e := plan.Env; e != nil && !bytes.Equal(e.Old.Data, e.New.Data) {
		return false, nil
	}
	b, err := staticpod.Current(d.Files)
	if b == nil || b.State != staticpod.Replaced {
		return false, err // a run was killed before it was finished
	}
	if record, err := b.Record(); err != nil || !bytes.Equal(record, plan.Record) {
		return false, err // another request is recorded
	}
	config, err := d.Files.Read(plan.ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && bytes.Equal(config.Data, plan.Configuration), err
}
