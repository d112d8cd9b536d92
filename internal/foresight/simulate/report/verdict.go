package report

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// Verdict returns the result in words: a line for the scheduler and, if it is compared, a line for
// the baseline and a line for what the scheduler does better or worse.
func (r *Report) Verdict() []string {
	name := r.Scheduler
	if name == corev1.DefaultSchedulerName { // of a request without a name: the baseline may have it too
		name = "this scheduler"
	}
	lines := []string{name + ": " + r.Summary.words()}
	c := r.Comparison
	if c == nil {
		return lines
	}
	lines = append(lines, c.Against+": "+c.Baseline.words())
	differences := r.Summary.differences(c)
	if len(differences) == 0 {
		return append(lines, name+" is neither better nor worse than "+c.Against+" in these figures")
	}
	return append(lines, "compared with "+c.Against+", "+name+" "+strings.Join(differences, ", "))
}

// words returns the pods that were placed, the nodes that are empty, and what those nodes cost.
func (s *Summary) words() string {
	parts := []string{fmt.Sprintf("%d of %s placed", s.Placed, plural.Count(s.Scheduled, "pod"))}
	if s.Evicted > 0 {
		parts = append(parts, fmt.Sprintf("%d evicted", s.Evicted))
	}
	if s.Before != nil && s.After != nil && s.Nodes > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s empty (before: %d)", len(s.After.EmptyNodes),
			plural.Count(s.Nodes, "node"), len(s.Before.EmptyNodes)))
	}
	if s.After != nil && s.After.Cost != nil && s.After.Cost.Nodes > 0 {
		cost := s.After.Cost
		parts = append(parts, fmt.Sprintf("empty nodes cost %s of %s units (%.1f %%)", FormatPrice(cost.EmptyNodes),
			FormatPrice(cost.Nodes), 100*cost.EmptyNodes/cost.Nodes))
	}
	return strings.Join(parts, ", ")
}

// Empty returns the number of empty nodes after the simulation and their cost, or "" for what is
// not known.
func (s *Summary) Empty() (nodes, cost string) {
	if s.After == nil {
		return "", ""
	}
	if s.After.Cost != nil {
		cost = FormatPrice(s.After.Cost.EmptyNodes)
	}
	return strconv.Itoa(len(s.After.EmptyNodes)), cost
}

// differences returns the figures that are outside of those of the baseline's two runs.
func (s *Summary) differences(c *Comparison) []string {
	var all []string
	add := func(verb, noun, rest string, figure func(*Summary) float64) {
		own, first, second := figure(s), figure(&c.Baseline), figure(&c.Repeated)
		difference, word := own-max(first, second), " more "
		if difference < 0 {
			difference, word = min(first, second)-own, " fewer "
		}
		if difference = rounded(difference); difference == 1 {
			all = append(all, verb+" 1"+word+noun+rest)
		} else if difference > 0 {
			all = append(all, verb+" "+FormatPrice(difference)+word+noun+"s"+rest)
		}
	}
	add("places", "pod", "", func(s *Summary) float64 { return float64(s.Placed) })
	add("evicts", "pod", "", func(s *Summary) float64 { return float64(s.Evicted) })
	if s.After == nil || c.Baseline.After == nil || c.Repeated.After == nil {
		return all
	}
	add("leaves", "node", " empty", func(s *Summary) float64 { return float64(len(s.After.EmptyNodes)) })
	if s.After.Cost != nil && c.Baseline.After.Cost != nil && c.Repeated.After.Cost != nil {
		add("leaves nodes empty that cost", "unit", "", func(s *Summary) float64 { return s.After.Cost.EmptyNodes })
	}
	return all
}
