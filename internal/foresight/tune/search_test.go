package tune

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func twoObjectives() []Objective { return []Objective{{Name: "less"}, {Name: "more", Higher: true}} }

func settings(n, levels int) []Setting {
	var all []Setting
	for i := range n {
		s := Setting{Name: "s" + strconv.Itoa(i)}
		for v := range levels {
			s.Values = append(s.Values, strconv.Itoa(v))
		}
		all = append(all, s)
	}
	return all
}

// known is a function whose front is known: the last settings have to be 5, and the first one is
// the trade-off.
func known(c []Candidate) ([]Trial, error) {
	var trials []Trial
	for _, candidate := range c {
		x, off := float64(candidate.Levels[0]), 0.0
		for _, level := range candidate.Levels[1:] {
			off += float64((level - 5) * (level - 5))
		}
		trials = append(trials, Trial{Candidate: candidate, Figures: Figures{x + off, 10*x - x*x/2 - off}})
	}
	return trials, nil
}

func search(t *testing.T, seed uint64, trials int) []Trial {
	t.Helper()
	s := Search{Settings: settings(5, 10), Objectives: twoObjectives(), Seed: seed, Trials: trials}
	found, err := s.Run([]Candidate{{Name: Today, Levels: []int{9, 0, 0, 0, 0}}}, known)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSearchIsDeterministic(t *testing.T) {
	if diff := cmp.Diff(search(t, 3, 60), search(t, 3, 60)); diff != "" {
		t.Errorf("the same seed gives other trials:\n%s", diff)
	}
	same := func(a, b Trial) bool { return slices.Equal(a.Levels, b.Levels) }
	if slices.EqualFunc(search(t, 3, 60), search(t, 4, 60), same) {
		t.Error("another seed gives the same trials")
	}
}

func TestSearchTriesNoCandidateTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, trial := range search(t, 1, 300) {
		key := ""
		for _, level := range trial.Levels {
			key += strconv.Itoa(level) + ","
		}
		if seen[key] {
			t.Errorf("%s is tried again", key)
		}
		seen[key] = true
	}
}

// candidates returns the batches of a search, with the names of what they were changed from.
func candidates(s Search, given []Candidate) (string, error) {
	var lines strings.Builder
	_, err := s.Run(given, func(next []Candidate) ([]Trial, error) {
		for _, c := range next {
			fmt.Fprintf(&lines, "%s %v %s\n", c.Name, c.Levels, c.From)
		}
		lines.WriteString("\n")
		return known(next)
	})
	return lines.String(), err
}

// The candidates are the same with each build, as users compare results of different days. Half of
// those that are not given are samples, and the others change one or two settings of others.
func TestCandidatesOfASeedStayTheSame(t *testing.T) {
	mixed := []Setting{{Name: "trade-off", Values: make([]string, 8)},
		{Name: "unordered", Values: make([]string, 6), Unordered: true}, {Name: "one value", Values: make([]string, 1)},
		{Name: "two values", Values: make([]string, 2)}}
	got, err := candidates(Search{Settings: mixed, Objectives: twoObjectives(), Seed: 5, Trials: 47},
		[]Candidate{{Name: Today, Levels: []int{7, 0, 0, 0}}, {Name: "preset a", Levels: []int{0, 5, 0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/candidates.txt", got)
}

// A given candidate with other values than the settings is evaluated, and not changed.
func TestACandidateOutsideOfTheSpaceIsNotChanged(t *testing.T) {
	s := Search{Settings: settings(1, 3), Objectives: twoObjectives(), Seed: 1, Trials: 7}
	best := func(next []Candidate) (trials []Trial, err error) {
		for _, c := range next {
			trials = append(trials, Trial{Candidate: c, Figures: Figures{float64(len(c.Levels)), 0}})
		}
		return trials, nil
	}
	trials, err := s.Run([]Candidate{{Name: Today}}, best)
	if err != nil || len(trials) != 4 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		if trial.From != "" {
			t.Errorf("%s is changed from %s", trial.Name, trial.From)
		}
	}
}

// Of a candidate that nothing beats, neighbors are tried after the samples, down to a single one.
func TestAFrontOfOneCandidateIsRefined(t *testing.T) {
	for total, want := range map[int]string{2: " -", 3: " - today", 4: " - - today", 5: " - - today today"} {
		s := Search{Settings: settings(1, 9), Objectives: twoObjectives(), Seed: 1, Trials: total}
		trials, err := s.Run([]Candidate{{Name: Today, Levels: []int{4}}}, func(next []Candidate) (all []Trial, err error) {
			for _, c := range next {
				all = append(all, Trial{Candidate: c, Figures: Figures{math.Abs(float64(c.Levels[0] - 4)), 0}})
			}
			return all, nil
		})
		got := ""
		for _, trial := range trials[1:] {
			got += " " + stdcmp.Or(trial.From, "-")
		}
		if err != nil || got != want {
			t.Errorf("%d trials are changed from%s, want%s: %v", total, got, want, err)
		}
	}
}

func TestASearchOfWhichAllTrialsFailEnds(t *testing.T) {
	s := Search{Settings: settings(2, 9), Objectives: twoObjectives(), Seed: 1, Trials: 20}
	trials, err := s.Run([]Candidate{{Name: Today, Levels: []int{4, 4}}}, func(next []Candidate) (all []Trial, err error) {
		for _, c := range next {
			all = append(all, Trial{Candidate: c, Error: "no API server"})
		}
		return all, nil
	})
	if err != nil || len(trials) != 11 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
}

// The given candidates are tried even if there are more of them than trials, and nothing else.
func TestGivenCandidatesAreTriedInAnyCase(t *testing.T) {
	for _, trials := range []int{0, 1, 2} {
		got, err := candidates(Search{Settings: settings(2, 5), Objectives: twoObjectives(), Trials: trials},
			[]Candidate{{Name: Today, Levels: []int{1, 1}}, {Name: "preset a", Levels: []int{2, 3}}})
		if want := "today [1 1] \npreset a [2 3] \n\n"; got != want || err != nil {
			t.Errorf("%d trials: %v, %s", trials, err, cmp.Diff(want, got))
		}
	}
	// Without settings there is nothing to try.
	s := Search{Objectives: twoObjectives(), Trials: 9}
	trials, err := s.Run([]Candidate{{Name: Today}}, func(next []Candidate) (all []Trial, err error) {
		for _, c := range next {
			all = append(all, Trial{Candidate: c, Figures: Figures{1, 1}})
		}
		return all, nil
	})
	if err != nil || len(trials) != 1 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
}

func TestASearchEndsWithTheFirstError(t *testing.T) {
	calls := 0
	trials, err := (&Search{Settings: settings(2, 5), Objectives: twoObjectives(), Trials: 40}).Run(
		[]Candidate{{Name: Today, Levels: []int{1, 1}}}, func(next []Candidate) ([]Trial, error) {
			if calls++; calls == 3 {
				return nil, errors.New("no API server")
			}
			return known(next)
		})
	if err == nil || err.Error() != "no API server" || trials != nil || calls != 3 {
		t.Errorf("%d calls, %d trials, %v", calls, len(trials), err)
	}
}

// A space with fewer choices than trials ends the search.
func TestSearchOfASmallSpaceEnds(t *testing.T) {
	s := Search{Settings: settings(1, 3), Objectives: twoObjectives(), Seed: 1, Trials: 50}
	trials, err := s.Run([]Candidate{{Name: Today, Levels: []int{0}}}, known)
	if err != nil || len(trials) != 3 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
}

// Whatever was given is part of the front, or beaten: for each objective the front has a point that
// is at least as good.
func TestFrontIsNoWorseThanTheGivenCandidates(t *testing.T) {
	trials := search(t, 2, 30)
	points := newPoints(twoObjectives(), trials, 1)
	for o := range twoObjectives() {
		if !slices.ContainsFunc(points, func(p Point) bool {
			return p.Front && costs(twoObjectives(), p.Figures)[o] <= costs(twoObjectives(), trials[0].Figures)[o]
		}) {
			t.Errorf("objective %d: today's configuration is better than the front", o)
		}
	}
}

func TestSearchFindsAKnownFront(t *testing.T) {
	for seed := range uint64(4) {
		trials := search(t, seed, 400)
		if len(trials) != 400 {
			t.Fatalf("seed %d: %d trials", seed, len(trials))
		}
		// Of the 100,000 choices, 10 are on the front.
		optimal := 0
		for _, p := range newPoints(twoObjectives(), trials, 1) {
			x := p.Figures[0]
			if p.Front && p.Figures[1] == 10*x-x*x/2 {
				optimal++
			}
		}
		if optimal < 8 {
			t.Errorf("seed %d: %d of 10 optimal choices", seed, optimal)
		}
	}
}
