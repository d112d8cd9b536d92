package replace

import (
	"context"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// setExtenders removes extenders from a configuration and adds others. A Policy has them already.
func (p *planner) setExtenders(s *scheduler, text []byte) ([]byte, error) {
	if len(p.o.Extenders)+len(p.o.DropExtenders) == 0 || p.o.PolicyConfigMap {
		return text, nil
	}
	if _, given := staticpod.Flag(s.args, policyFlag); given {
		return nil, problem.Invalidf("replace the Policy with a configuration first",
			"the default scheduler reads a Policy, in which a single extender cannot be changed")
	}
	text, notes, err := profiles.SetExtenders(text, p.info.Release, p.o.DropExtenders, p.o.Extenders)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		p.warnf("%s", n.Message)
	}
	for _, e := range p.o.Extenders {
		p.notef("extender %s at %s", e.Name, e.URLPrefix)
	}
	return text, nil
}

// forExtender is Options.For in a replacement that is for an extender only.
func forExtender(name string) string { return "extender " + name }

// CallExtender makes this node's default scheduler call an extender. Its image and the rest of its
// configuration do not change.
func CallExtender(ctx context.Context, d Deps, info *inspect.Info, o Options, w manifest.Wiring) error {
	_, err := Run(ctx, d, info, o.withExtender(w))
	return err
}

// DryRunExtender makes CallExtender's checks and returns its plan.
func DryRunExtender(ctx context.Context, d Deps, info *inspect.Info, o Options, w manifest.Wiring) (*Plan, error) {
	return DryRun(ctx, d, info, o.withExtender(w))
}

// LeaveExtender removes the extender at the given addresses from this node's default scheduler: if
// the scheduler was replaced only for the extender, the original is restored byte by byte,
// otherwise it is replaced by one without the extender.
func LeaveExtender(ctx context.Context, d Deps, info *inspect.Info, o Options, name string, addresses []string) error {
	list, err := staticpod.Backups(d.Files)
	if err != nil {
		return err
	}
	b := staticpod.Current(list)
	switch {
	case b == nil:
		return nil // it was restored meanwhile
	case b.For == forExtender(name):
		_, err := Restore(ctx, d, false)
		return err
	}
	o.DropExtenders = addresses
	if _, err := Run(ctx, d, info, o); err != nil {
		return fmt.Errorf("remove extender %s from the default scheduler: %w", name, err)
	}
	return nil
}

func (o Options) withExtender(w manifest.Wiring) Options {
	o.Extenders, o.For = []profiles.Extender{w.Extender}, forExtender(w.Extender.Name)
	o.DropExtenders = slices.Compact([]string{w.Extender.URLPrefix, "https://" + w.Extender.TLS.ServerName})
	return o
}
