package replay

import (
	"container/heap"
	"time"
)

// Group are a recording's events and pod ends that are applied together. The scheduler decides
// afterwards.
type Group[E any] struct {
	// At is the time of the last one.
	At     time.Duration
	Ends   []string // IDs of pods
	Events []E
}

// Steps is the virtual clock for a replay: it brings recorded events and pod ends into time order,
// and skips times in which nothing happens.
type Steps[E any] struct {
	// step is a group's greatest length.
	step time.Duration
	do   func(Group[E]) error

	ends  ends
	group *Group[E]
	start time.Duration // of the group
	now   time.Duration
}

// newSteps returns a clock that calls do for each group. do may add ends.
func newSteps[E any](step time.Duration, do func(Group[E]) error) *Steps[E] {
	return &Steps[E]{step: max(step, 1), do: do}
}

// End adds the end of a pod.
func (s *Steps[E]) End(at time.Duration, id string) { heap.Push(&s.ends, end{max(at, s.now), id}) }

// Event adds an event, at a time after all events before.
func (s *Steps[E]) Event(at time.Duration, e E) error {
	if err := s.until(at); err != nil {
		return err
	}
	if s.group == nil {
		s.begin(at)
	}
	s.group.Events = append(s.group.Events, e)
	s.group.At = max(s.group.At, at)
	return nil
}

// Finish runs everything until the recording ends.
func (s *Steps[E]) Finish(at time.Duration) error {
	if err := s.until(at + 1); err != nil || s.group == nil {
		return err
	}
	return s.run(min(s.start+s.step, at+1))
}

// until runs the groups that end before a time.
func (s *Steps[E]) until(at time.Duration) error {
	for {
		if s.group == nil {
			if len(s.ends) == 0 || s.ends[0].at >= at {
				return nil
			}
			s.begin(s.ends[0].at)
		}
		if at < s.start+s.step {
			return nil
		}
		if err := s.run(s.start + s.step); err != nil {
			return err
		}
	}
}

func (s *Steps[E]) begin(at time.Duration) {
	s.start = max(at, s.now)
	s.group = &Group[E]{At: s.start}
}

// run runs the group with the ends before a time.
func (s *Steps[E]) run(before time.Duration) error {
	g := s.group
	for len(s.ends) > 0 && s.ends[0].at < before {
		e, _ := heap.Pop(&s.ends).(end)
		g.Ends, g.At = append(g.Ends, e.id), max(g.At, e.at)
	}
	s.group, s.now = nil, g.At
	return s.do(*g)
}

// end is the end of a pod.
type end struct {
	at time.Duration
	id string
}

// ends implements [heap.Interface].
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements [heap.Interface].
func (e *ends) Push(x any) {
	if one, ok := x.(end); ok {
		*e = append(*e, one)
	}
}

// Pop implements [heap.Interface].
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
