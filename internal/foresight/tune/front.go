package tune

import (
	"cmp"
	"math"
	"slices"
)

// costs returns figures for which less is better.
func costs(objectives []Objective, f Figures) Figures {
	c := slices.Clone(f)
	for i, o := range objectives {
		if o.Higher {
			c[i] = -c[i]
		}
	}
	return c
}

// dominates reports whether a is at least as good as b in each objective, and better in one.
func dominates(objectives []Objective, a, b Figures) bool {
	better := false
	for i, o := range objectives {
		x, y := a[i], b[i]
		if o.Higher {
			x, y = y, x
		}
		if x > y {
			return false
		}
		better = better || x < y
	}
	return better
}

// front returns the indexes of the figures that no others dominate. If figures are equal, only the
// first ones belong to it. Nil figures, from a failed trial, do not.
func front(objectives []Objective, all []Figures) []int {
	var front []int
	for i, f := range all {
		beaten := f == nil
		for j, other := range all {
			if f != nil && other != nil && (dominates(objectives, other, f) || j < i && slices.Equal(other, f)) {
				beaten = true
			}
		}
		if !beaten {
			front = append(front, i)
		}
	}
	return front
}

// crowding orders a front's indexes: those far from their neighbors first, and at the very
// beginning the best ones for each objective (the crowding distance in NSGA-II).
func crowding(objectives []Objective, all []Figures, front []int) []int {
	distance := map[int]float64{}
	for o := range objectives {
		sorted := slices.Clone(front)
		slices.SortFunc(sorted, func(a, b int) int { return cmp.Or(cmp.Compare(all[a][o], all[b][o]), cmp.Compare(a, b)) })
		first, last := sorted[0], sorted[len(sorted)-1]
		scale := all[last][o] - all[first][o]
		if scale == 0 {
			continue
		}
		distance[first], distance[last] = math.Inf(1), math.Inf(1)
		for i := 1; i+1 < len(sorted); i++ {
			distance[sorted[i]] += (all[sorted[i+1]][o] - all[sorted[i-1]][o]) / scale
		}
	}
	ordered := slices.Clone(front)
	slices.SortFunc(ordered, func(a, b int) int {
		return cmp.Or(cmp.Compare(distance[b], distance[a]), cmp.Compare(a, b))
	})
	return ordered
}
