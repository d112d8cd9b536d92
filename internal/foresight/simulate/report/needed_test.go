package report

import (
	"errors"
	"testing"
)

func TestFewestNodes(t *testing.T) {
	// Each node takes perNode of fitting pods; unfitting pods fit on no node.
	cases := map[string]struct {
		fitting, unfitting, perNode, limit int
		want                               int
		limited                            bool
		tries                              int
	}{
		"one node":          {3, 0, 3, 100, 1, false, 1},
		"a power of two":    {12, 0, 3, 100, 4, false, 4},
		"between":           {19, 0, 3, 100, 7, false, 6},
		"some never fit":    {5, 2, 1, 100, 5, false, 7},
		"none fits":         {0, 2, 1, 100, 1, false, 2},
		"more than allowed": {100, 0, 1, 10, 10, true, 6},
		"one is allowed":    {100, 0, 1, 1, 1, true, 1},
		"no pods":           {0, 0, 1, 100, 1, false, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tries := 0
			nodes, limited, err := FewestNodes(tc.limit, func(nodes int) (int, error) {
				tries++
				return max(tc.fitting-nodes*tc.perNode, 0) + tc.unfitting, nil
			})
			if err != nil || nodes != tc.want || limited != tc.limited || tries != tc.tries {
				t.Errorf("got %d nodes, limited %t, %d tries, %v; want %d, %t, %d", nodes, limited, tries, err, tc.want, tc.limited,
					tc.tries)
			}
		})
	}
	broken := errors.New("broken")
	if _, _, err := FewestNodes(9, func(int) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
