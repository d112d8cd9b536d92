package replace

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// DefaultUpgrade is the upgrade for this node's replaced default scheduler.
type DefaultUpgrade struct {
	*Node `json:"-"`
	// Name of the node.
	Name string `json:"node"`
	// Release and Image of the replacement. Target is the API server's release.
	Release string `json:"release"`
	Image   string `json:"image"`
	Target  string `json:"target"`
	// Due is set if Release and Target differ, or if the node's files have changed since the
	// replacement.
	Due   bool     `json:"due"`
	Drift []string `json:"drift,omitempty"`
	// NewImage is the image to run, or empty for the image in the manifest; Build reports whether Run
	// builds it. Configuration is the file or the preset of the configuration.
	NewImage      string `json:"newImage,omitempty"`
	Build         bool   `json:"build,omitempty"`
	Configuration string `json:"configuration,omitempty"`

	plugins []pack.Plugin
	build   *pack.Request
}

// PlanDefaultUpgrade inspects the cluster and this node, and plans the upgrade for its replaced
// default scheduler. It changes nothing.
func PlanDefaultUpgrade(
	ctx context.Context, s *session.Session, o lifecycle.UpgradeOptions,
) (*DefaultUpgrade, error) {
	u := &DefaultUpgrade{Node: &Node{s: s}}
	if err := u.inspect(ctx); err != nil {
		return nil, err
	}
	return u, u.plan(ctx, o)
}

// plan compares the node's replacement with the API server's release, and plans it again.
func (u *DefaultUpgrade) plan(ctx context.Context, o lifecycle.UpgradeOptions) error {
	b, err := u.replacement()
	if err != nil {
		return err
	}
	former, err := requireRecord(b)
	if err != nil {
		return err
	}
	u.Name, u.Image, u.Release, u.Target = b.Node, b.Image, former.Release.String(), u.info.Release.String()
	if u.Due = former.Release != u.info.Release || len(u.Drift) > 0; !u.Due {
		return nil
	}
	again, build, notes, err := o.Again(ctx, u.s, deploy.Installed{
		Release: former.Release, Image: b.Image, Request: former.Request, Origin: "the record of backup " + b.Dir(),
	}, u.info.Release)
	if err != nil {
		return err
	}
	for _, note := range notes {
		u.s.Note(note)
	}
	if u.build, u.Build = build, build != nil; u.Build {
		if err := o.Confirm.Settle(ctx, &build.Unconfirmed); err != nil {
			return err
		}
	}
	if u.plugins, err = again.Plugins(); err != nil {
		return err
	}
	if u.o, err = replacement(again); err != nil {
		return err
	}
	u.o.Node, u.o.Timeout, u.o.StableFor, u.o.FitGates = b.Node, o.Deploy.Timeout, o.Deploy.StableFor, true
	preset, _, file := deploy.Configuration(&u.o.Request)
	u.NewImage, u.Configuration = u.goal("").Image, cmp.Or(file, preset)
	return nil
}

// replacement returns this node's replacement.
func (u *DefaultUpgrade) replacement() (*staticpod.Backup, error) {
	b, err := staticpod.Current(u.deps.Files)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil,
			problem.Invalidf(
				"run it on a control-plane node where `pmk-sched replace` did; `pmk-sched upgrade check` lists them",
				"the default scheduler of this node is not replaced")
	case b.State == staticpod.Started:
		return nil, problem.Invalidf("run `pmk-sched replace` again with the same flags, or `pmk-sched restore`",
			"the replacement of the default scheduler of node %s is unfinished", b.Node)
	}
	here, err := u.deps.here()
	if err != nil {
		return nil, err
	}
	u.Drift = here.changes()
	return b, nil
}

// Run builds the image if that is needed, and replaces this node's default scheduler again.
func (u *DefaultUpgrade) Run(ctx context.Context) (*Outcome, error) {
	if u.build != nil {
		if _, err := pack.Run(ctx, *u.build, u.s); err != nil {
			return nil, fmt.Errorf("build %s: %w", u.NewImage, err)
		}
	}
	if err := u.addPlugins(ctx, u.plugins); err != nil {
		return nil, err
	}
	return u.Node.Run(ctx)
}
