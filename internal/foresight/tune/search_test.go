package tune

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestSearchFindsAKnownFront(t *testing.T) {
	for seed := range uint64(4) {
		trials := search(t, seed, 400)
		if len(trials) != 400 {
			t.Fatalf("seed %d: %d trials", seed, len(trials))
		}
		// Of the 100,000 choices, 10 are on the front.
		optimal := 0
		for _, p := range NewPoints(twoObjectives(), trials, 1) {
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
	points := NewPoints(twoObjectives(), trials, 1)
	for o := range twoObjectives() {
		if !slices.ContainsFunc(points, func(p Point) bool {
			return p.Front && costs(twoObjectives(), p.Figures)[o] <= costs(twoObjectives(), trials[0].Figures)[o]
		}) {
			t.Errorf("objective %d: today's configuration is better than the front", o)
		}
	}
}

func TestFront(t *testing.T) {
	all := []Figures{{1, 1}, nil, {2, 2}, {2, 1}, {1, 1}, {3, 2}}
	if diff := cmp.Diff([]int{0, 2}, Front(twoObjectives(), all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 2}, crowding(twoObjectives(), all, []int{2, 0})); diff != "" {
		t.Error(diff)
	}
}

func TestParseObjectives(t *testing.T) {
	found, err := ParseObjectives("empty-nodes, unplaced,unplaced")
	if err != nil || len(found) != 2 || !found[0].Higher || found[1].Name != Unplaced {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := ParseObjectives("empty-nodes,fast"); err == nil {
		t.Error("an unknown objective is accepted")
	}
}
