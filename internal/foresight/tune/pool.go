package tune

import (
	"context"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// pool runs simulations, on this machine or on a cluster.
type pool struct {
	s        *session.Session
	r        Request
	variants *matrix.Variants
	// ranks is the number of nodes that the tie breaker can rank.
	ranks int

	notes       []string
	simulations int
	scheduling  float64 // seconds
}

// try returns a trial for each candidate, with its mean figures. A simulation that fails ends the
// trial only.
func (p *pool) try(ctx context.Context, x *space, next []Candidate, worlds []*world) ([]Trial, error) {
	first, err := x.firstEqual(next)
	if err != nil {
		return nil, err
	}
	var variants []matrix.Variant
	for _, w := range worlds { // simulations of one release follow each other on an API server
		for c := range next {
			if first[c] != c {
				continue
			}
			configuration, err := x.configuration(next[c]).BreakTies(x.scheduler.Configuration.Extenders,
				kubescheduler.TieAddresses(p.ranks), kubescheduler.TiesVerb)
			if err != nil {
				return nil, err
			}
			variants = append(variants, matrix.Variant{Snapshot: w.index, Name: next[c].Name,
				Configuration: string(configuration)})
		}
	}
	outcomes, err := p.variants.Run(ctx, p.s.Quiet(), variants)
	if err != nil {
		return nil, err
	}
	trials := make([]Trial, len(next))
	for i, c := range next {
		trials[i] = Trial{Candidate: c, BySnapshot: make([]Figures, 0, len(worlds))}
		for j, v := range variants {
			if v.Name == next[first[i]].Name {
				p.add(&trials[i], outcomes[j])
			}
		}
		if trials[i].Error == "" {
			trials[i].Figures = mean(trials[i].BySnapshot)
		} else {
			trials[i].BySnapshot = nil
		}
	}
	for i, o := range outcomes {
		if o.Result != nil {
			p.simulations++
			p.scheduling += o.Result.Summary.ScheduleSeconds
			p.note(worlds, variants[i].Snapshot, o.Result)
		}
	}
	return trials, nil
}

// add adds a simulation's figures to a trial.
func (p *pool) add(t *Trial, o matrix.Outcome) {
	if o.Result == nil {
		t.Error, _, _ = strings.Cut(o.Error, "\n") // the logs of programs follow
		return
	}
	t.BySnapshot = append(t.BySnapshot, figuresOf(p.r.Objectives, o.Result))
}

func (p *pool) note(worlds []*world, index int, result *report.Report) {
	i := slices.IndexFunc(worlds, func(w *world) bool { return w.index == index })
	for _, note := range result.Notes {
		if note = worlds[i].name + ": " + note; !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
	}
}

func (p *pool) collected() []string {
	slices.Sort(p.notes)
	return append([]string{}, p.notes...)
}
