package extender

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// MaxWeight is the maximum weight of a policy, which is also the practical maximum for a scheduler
// plugin.
const MaxWeight = 100

// served is a policy with its extension points; missing ones are nil.
type served struct {
	name      string
	weight    int64
	preFilter scheduler.PreFilterPlugin
	removal   scheduler.PreFilterExtensions
	filter    scheduler.FilterPlugin
	preScore  scheduler.PreScorePlugin
	score     scheduler.ScorePlugin
	normalize scheduler.ScoreNormalizer
	reserve   scheduler.ReservePlugin
	preBind   scheduler.PreBindPlugin
	bind      scheduler.BindPlugin
	postBind  scheduler.PostBindPlugin
	ready     ReadyPolicy
}

// serve returns a policy's extension points, and the names of extension points that no scheduler
// request calls.
func serve(p Policy) (s *served, left []string, err error) {
	if p.Plugin == nil {
		return nil, nil, &optionError{fmt.Sprintf("policy %q has no plugin", p.Name)}
	}
	s = &served{name: p.Name, weight: p.Weight}
	if s.name == "" {
		s.name = p.Plugin.Name()
	}
	if s.weight == 0 {
		s.weight = 1
	}
	if s.weight < 1 || s.weight > MaxWeight {
		return nil, nil, &optionError{fmt.Sprintf("policy %s: weight %d is not between 1 and %d", s.name, p.Weight,
			MaxWeight)}
	}
	s.preFilter, _ = p.Plugin.(scheduler.PreFilterPlugin)
	s.removal, _ = p.Plugin.(scheduler.PreFilterExtensions)
	s.filter, _ = p.Plugin.(scheduler.FilterPlugin)
	s.preScore, _ = p.Plugin.(scheduler.PreScorePlugin)
	s.score, _ = p.Plugin.(scheduler.ScorePlugin)
	s.normalize, _ = p.Plugin.(scheduler.ScoreNormalizer)
	s.reserve, _ = p.Plugin.(scheduler.ReservePlugin)
	s.preBind, _ = p.Plugin.(scheduler.PreBindPlugin)
	s.bind, _ = p.Plugin.(scheduler.BindPlugin)
	s.postBind, _ = p.Plugin.(scheduler.PostBindPlugin)
	s.ready, _ = p.Plugin.(ReadyPolicy)
	if _, permits := p.Plugin.(scheduler.PermitPlugin); permits {
		return nil, nil,
			&optionError{fmt.Sprintf("policy %s implements Permit, which only a scheduler calls: compile it into the scheduler",
				s.name)}
	}
	left = leftOut(p.Plugin)
	if len(s.points()) == 0 {
		return nil, nil, &optionError{fmt.Sprintf("policy %s has no extension point that an extender can serve; it has %s",
			s.name, orNothing(left))}
	}
	return s, left, nil
}

// leftOut returns the extension points of a plugin that only a scheduler can call.
func leftOut(p scheduler.Plugin) []string {
	var left []string
	note := func(has bool, point string) {
		if has {
			left = append(left, point)
		}
	}
	_, has := p.(scheduler.PreEnqueuePlugin)
	note(has, "PreEnqueue")
	_, has = p.(scheduler.QueueSortPlugin)
	note(has, "QueueSort")
	_, has = p.(scheduler.PostFilterPlugin)
	note(has, "PostFilter")
	return left
}

func orNothing(points []string) string {
	if len(points) == 0 {
		return "no extension point"
	}
	return "only " + strings.Join(points, ", ")
}

func (s *served) points() []string {
	var has []string
	for _, point := range []struct {
		name string
		has  bool
	}{
		{"PreFilter", s.preFilter != nil}, {"Filter", s.filter != nil}, {"PreScore", s.preScore != nil}, {"Score",
			s.score != nil},
		{"Reserve", s.reserve != nil}, {"PreBind", s.preBind != nil}, {"Bind", s.bind != nil}, {"PostBind",
			s.postBind != nil},
	} {
		if point.has {
			has = append(has, point.name)
		}
	}
	return has
}

// serveAll calls serve for all policies. Their names must be unique.
func serveAll(policies []Policy) (all []*served, left map[string][]string, err error) {
	if len(policies) == 0 {
		return nil, nil, &optionError{"no policy to serve"}
	}
	left = map[string][]string{}
	for _, p := range policies {
		s, points, err := serve(p)
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(all, func(other *served) bool { return other.name == s.name }) {
			return nil, nil, &optionError{fmt.Sprintf("policy %s is given twice", s.name)}
		}
		all = append(all, s)
		if len(points) > 0 {
			left[s.name] = points
		}
	}
	return all, left, nil
}

// optionError is an error in the options or the configuration.
type optionError struct{ message string }

// Error returns the message.
func (e *optionError) Error() string { return e.message }

// Invalid reports that the input is wrong.
func (e *optionError) Invalid() bool { return true }
