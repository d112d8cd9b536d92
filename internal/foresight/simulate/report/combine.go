package report

import (
	"fmt"
	"slices"
)

// Combine returns the result from steps that were run one after the other: the final node for each
// pod that was scheduled. For one step the result is the step itself.
func Combine(steps []*Report) *Report {
	first, last := steps[0], steps[len(steps)-1]
	if len(steps) == 1 {
		return first
	}
	c := combination{placed: map[podKey]Placement{}, unplaced: map[podKey]Unplaced{}, evicted: map[podKey]Placement{}}
	all := &Report{Scenario: "sequence", Release: last.Release, Scheduler: last.Scheduler, Steps: steps,
		Capacity: last.Capacity, Notes: combineNotes(steps)}
	for _, step := range steps {
		c.add(step)
		all.Summary.LoadSeconds += step.Summary.LoadSeconds
		all.Summary.ScheduleSeconds += step.Summary.ScheduleSeconds
	}
	all.Placements, all.Unplaced, all.Evicted = values(c.placed), values(c.unplaced), values(c.evicted)
	all.Summary.Nodes, all.Summary.Pods = last.Summary.Nodes, first.Summary.Pods
	before, _ := first.State()
	_, after := last.State()
	all.compare(before, after) // the steps have the notes
	all.Finish()
	return all
}

// combineNotes returns notes that all steps have once, and other notes with their step's number.
func combineNotes(steps []*Report) (notes []string) {
	for i, step := range steps {
		for _, note := range step.Notes {
			lacks := func(other *Report) bool { return !slices.Contains(other.Notes, note) }
			if slices.ContainsFunc(steps, lacks) {
				note = fmt.Sprintf("step %d: %s", i+1, note)
			}
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// podKey identifies a pod.
type podKey struct{ namespace, name string }

type combination struct {
	placed   map[podKey]Placement
	unplaced map[podKey]Unplaced
	evicted  map[podKey]Placement
}

// add adds a step: its decision about a pod replaces earlier ones, but the pod keeps its node from
// before all steps.
func (c *combination) add(step *Report) {
	for _, e := range step.Evicted {
		key := podKey{e.Namespace, e.Name}
		if before, ok := c.placed[key]; ok {
			delete(c.placed, key)
			c.unplaced[key] = Unplaced{Namespace: e.Namespace, Name: e.Name, From: before.From, Reason: Evicted, By: e.By}
			continue
		}
		c.evicted[key] = e
	}
	for _, p := range step.Placements {
		key := podKey{p.Namespace, p.Name}
		p.From = c.from(key, p.From)
		delete(c.unplaced, key)
		c.placed[key] = p
	}
	for _, u := range step.Unplaced {
		key := podKey{u.Namespace, u.Name}
		u.From = c.from(key, u.From)
		delete(c.placed, key)
		c.unplaced[key] = u
	}
}

// from returns a pod's node before all steps.
func (c *combination) from(key podKey, from string) string {
	if before, ok := c.placed[key]; ok {
		return before.From
	}
	if before, ok := c.unplaced[key]; ok {
		return before.From
	}
	return from
}

func values[V any](m map[podKey]V) []V {
	list := make([]V, 0, len(m))
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
