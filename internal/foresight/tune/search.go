package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Setting is a list of values to choose from.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// Unordered is set if neighbors in the list are not more alike than others.
	Unordered bool `json:"unordered,omitempty"`
}

// Candidate is a choice.
type Candidate struct {
	// Name is the unique name of a given candidate, or of one that the search has found.
	Name string `json:"name"`
	// From names the candidate that this one was changed from.
	From string `json:"from,omitempty"`
	// Levels are the index of each setting's value. They are nil if a given candidate has other
	// values: it is then not changed.
	Levels []int `json:"levels,omitempty"`
}

// Trial is a candidate with its figures. They are nil if it failed.
type Trial struct {
	Candidate
	// Figures are means over the snapshots, BySnapshot the figures for each.
	Figures    Figures   `json:"figures"`
	BySnapshot []Figures `json:"bySnapshot"`
	Error      string    `json:"error,omitempty"`
}

// batch is the number of candidates that are tried before the next ones are chosen. It does not
// depend on the number that run at the same time, so that the result does not either.
const batch = 8

// Search is a search for a front.
type Search struct {
	Settings   []Setting
	Objectives []Objective
	Seed       uint64
	// Trials is the number of trials in all. The given candidates are tried in any case.
	Trials int

	trials []Trial
	random *rand.Rand
}

// Run evaluates the given candidates, then samples, then the front's neighbors. try returns a trial
// for each candidate.
func (s *Search) Run(given []Candidate, try func([]Candidate) ([]Trial, error)) ([]Trial, error) {
	s.trials, s.random = nil, rand.New(rand.NewPCG(s.Seed, 0))
	next := given
	samples := 0
	for len(next) > 0 {
		done, err := try(next)
		if err != nil {
			return nil, err
		}
		s.trials = append(s.trials, done...)
		left := s.Trials - len(s.trials)
		toSample := (s.Trials-len(given)+1)/2 - samples
		if toSample > 0 {
			next = s.sample(min(batch, left, toSample))
			samples += len(next)
		} else {
			next = s.refine(min(batch, left))
		}
	}
	return s.trials, nil
}

// mostAttempts bounds the search for a candidate that was not tried.
const mostAttempts = 200

// sample returns candidates that cover all settings evenly.
func (s *Search) sample(n int) []Candidate {
	// The generalized golden ratio solves g^(d+1) = g + 1.
	d, g := len(s.Settings), 2.0
	for range 60 {
		g = math.Pow(1+g, 1/float64(d+1))
	}
	shift := rand.New(rand.NewPCG(s.Seed, 1))
	offsets := make([]float64, d)
	for i := range offsets {
		offsets[i] = shift.Float64()
	}
	var found []Candidate
	for k := 1; len(found) < n && k < mostAttempts+s.Trials; k++ {
		levels := make([]int, d)
		for i, setting := range s.Settings {
			_, part := math.Modf(offsets[i] + float64(k)/math.Pow(g, float64(i+1)))
			levels[i] = min(int(part*float64(len(setting.Values))), len(setting.Values)-1)
		}
		if !s.known(found, levels) {
			found = append(found, s.candidate(found, "", levels))
		}
	}
	return found
}

// refine returns the front's neighbors.
func (s *Search) refine(n int) []Candidate {
	all := make([]Figures, len(s.trials))
	for i := range s.trials {
		all[i] = s.trials[i].Figures
	}
	front := front(s.Objectives, all)
	if len(front) == 0 || len(s.Settings) == 0 {
		return nil
	}
	parents := slices.DeleteFunc(crowding(s.Objectives, all, front), func(i int) bool { return s.trials[i].Levels == nil })
	var found []Candidate
	for attempt := 0; len(found) < n && attempt < mostAttempts && len(parents) > 0; attempt++ {
		parent := s.trials[parents[attempt%len(parents)]]
		levels := slices.Clone(parent.Levels)
		for range 1 + s.random.IntN(2) {
			s.change(levels)
		}
		if !s.known(found, levels) {
			found = append(found, s.candidate(found, parent.Name, levels))
		}
	}
	return found
}

// change changes one setting: to a value next to it, or to any other one if it is unordered.
func (s *Search) change(levels []int) {
	i := s.random.IntN(len(levels))
	n := len(s.Settings[i].Values)
	switch {
	case n < 2:
	case s.Settings[i].Unordered:
		levels[i] = (levels[i] + 1 + s.random.IntN(n-1)) % n
	case levels[i] == 0 || levels[i] < n-1 && s.random.IntN(2) == 0:
		levels[i]++
	default:
		levels[i]--
	}
}

func (s *Search) candidate(found []Candidate, from string, levels []int) Candidate {
	return Candidate{Name: fmt.Sprintf("trial %d", len(s.trials)+len(found)+1), From: from, Levels: levels}
}

func (s *Search) known(found []Candidate, levels []int) bool {
	return slices.ContainsFunc(found, func(c Candidate) bool { return slices.Equal(c.Levels, levels) }) ||
		slices.ContainsFunc(s.trials, func(t Trial) bool { return slices.Equal(t.Levels, levels) })
}
