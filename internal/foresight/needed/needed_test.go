package needed

import (
	"errors"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// result returns a result with so many of all pods placed.
func result(placed, all int) *report.Report {
	return &report.Report{Placements: make([]report.Placement, placed), Unplaced: make([]report.Unplaced, all-placed)}
}

func TestFewestNodes(t *testing.T) {
	// Each node takes perNode of fitting pods, and perNode of a group if there are enough nodes for
	// all of them; unfitting pods fit on no node.
	cases := map[string]struct {
		fitting, group, unfitting, perNode, limit int
		want                                      int
		limited                                   bool
		tries                                     int
	}{
		"one node":                {3, 0, 0, 3, 100, 1, false, 1},
		"a power of two":          {12, 0, 0, 3, 100, 4, false, 4},
		"between":                 {19, 0, 0, 3, 100, 7, false, 6},
		"some never fit":          {5, 0, 2, 1, 100, 5, false, 5},
		"none fits":               {0, 0, 2, 1, 100, 1, false, 2},
		"more than allowed":       {100, 0, 0, 1, 10, 10, true, 6},
		"one is allowed":          {100, 0, 0, 1, 1, 1, true, 1},
		"no pods":                 {0, 0, 0, 1, 100, 1, false, 1},
		"a group of four":         {0, 4, 0, 1, 100, 4, false, 4},
		"two on each node":        {0, 40, 0, 2, 100, 20, false, 9},
		"a group after others":    {3, 9, 0, 1, 100, 12, false, 7},
		"a group, and pods apart": {0, 6, 3, 1, 100, 6, false, 6},
		"a group above the limit": {0, 40, 0, 1, 20, 1, true, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tries := 0
			nodes, limited, err := fewestNodes(tc.limit, func(nodes int) (*report.Report, error) {
				tries++
				room := nodes * tc.perNode
				placed := min(tc.fitting, room)
				if room-placed >= tc.group {
					placed += tc.group
				}
				all := tc.fitting + tc.group + tc.unfitting
				return result(placed, all), nil
			})
			if err != nil || nodes != tc.want || limited != tc.limited || tries != tc.tries {
				t.Errorf("got %d nodes, limited %t, %d tries, %v; want %d, %t, %d", nodes, limited, tries, err, tc.want, tc.limited,
					tc.tries)
			}
		})
	}
	// A simulation that fails ends the search, whichever it is.
	broken := errors.New("broken")
	for fails := 1; fails <= 8; fails++ {
		tries := 0
		_, limited, err := fewestNodes(100, func(nodes int) (*report.Report, error) {
			if tries++; tries == fails {
				return nil, broken
			}
			placed := min(3, nodes) // of 12, of which 9 need 9 nodes
			if nodes >= 12 {
				placed = 12
			}
			return result(placed, 12), nil
		})
		if tries != min(fails, 7) || errors.Is(err, broken) != (fails <= 7) || limited {
			t.Errorf("try %d fails: %d tries, %v", fails, tries, err)
		}
	}
}
