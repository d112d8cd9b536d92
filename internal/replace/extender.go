package replace

import (
	"context"
	"fmt"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// setExtenders takes extenders out of the configuration and puts others in.
func (p *planner) setExtenders() error {
	if len(p.o.Extenders)+len(p.o.DropExtenders) == 0 || p.o.PolicyConfigMap { // a Policy has them already
		return nil
	}
	if _, given := staticpod.Flag(p.r.words, "policy-configmap"); given {
		return problem.Invalidf("replace it with a configuration first", "the default scheduler reads a Policy, in which no extender can be changed by itself")
	}
	text, notes, err := profiles.SetExtenders(p.r.Configuration, p.info.Release, p.o.DropExtenders, p.o.Extenders)
	if err != nil {
		return err
	}
	p.r.Configuration = text
	for _, n := range notes {
		p.warnOf("%s", n.Message)
	}
	for _, e := range p.o.Extenders {
		p.note("extender %s at %s", e.Name, e.URLPrefix)
	}
	return nil
}

// forExtender names a replacement that is for an extender only.
func forExtender(name string) string { return "extender " + name }

// CallExtender makes the default scheduler of this node call an extender, with the image and all else of its configuration as they are.
func CallExtender(ctx context.Context, d Deps, info *cluster.Info, o Options, w manifest.Wiring) error {
	_, err := Run(ctx, d, info, callingExtender(o, w))
	return err
}

// LeaveExtender makes the default scheduler of this node what it was before it called the extender at those addresses: the original, byte by byte,
// if it was replaced for the extender only; else the replacement without the extender.
func LeaveExtender(ctx context.Context, d Deps, info *cluster.Info, o Options, name string, addresses []string) error {
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
		return fmt.Errorf("take extender %s out of the default scheduler: %w", name, err)
	}
	return nil
}

// NodeOf finds out which control-plane node this is, as Replace does.
func NodeOf(info *cluster.Info, o Options) (string, error) {
	p := planner{info: info, o: o, r: &Plan{}}
	if err := p.whichNode(); err != nil {
		return "", err
	}
	return p.r.Node, nil
}

// DryRunExtender makes the checks of CallExtender and returns what it would do.
func DryRunExtender(ctx context.Context, d Deps, info *cluster.Info, o Options, w manifest.Wiring) (*Plan, error) {
	return DryRun(ctx, d, info, callingExtender(o, w))
}

func callingExtender(o Options, w manifest.Wiring) Options {
	o.Extenders, o.For = []profiles.Extender{w.Extender}, forExtender(w.Extender.Name)
	o.DropExtenders = slices.Compact([]string{w.Extender.URLPrefix, "https://" + w.Extender.TLS.ServerName})
	return o
}
