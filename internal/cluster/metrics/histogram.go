package metrics

import (
	"maps"
	"math"
	"slices"
)

// Histogram is a histogram, or the sum of several. The zero value is empty.
type Histogram struct {
	Sum, Count float64
	buckets    map[float64]float64 // cumulative counts by upper bound
}

// Add adds another histogram, which may be nil.
func (h *Histogram) Add(other *Histogram) {
	if other == nil {
		return
	}
	if h.buckets == nil {
		h.buckets = map[float64]float64{}
	}
	h.Sum, h.Count = h.Sum+other.Sum, h.Count+other.Count
	for bound, n := range other.buckets {
		h.buckets[bound] += n
	}
}

// Mean returns the mean of the observations, 0 if there are none.
func (h *Histogram) Mean() float64 {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / h.Count
}

// Quantile interpolates a quantile within its bucket, as Prometheus' histogram_quantile does. It is
// 0 without observations, and never above the last finite bound.
func (h *Histogram) Quantile(q float64) float64 {
	bounds := slices.Sorted(maps.Keys(h.buckets))
	if len(bounds) == 0 {
		return 0
	}
	rank, lower, before := q*h.buckets[bounds[len(bounds)-1]], 0.0, 0.0
	for _, bound := range bounds {
		count := h.buckets[bound]
		if count < rank || count == before {
			lower, before = bound, count
			continue
		}
		if math.IsInf(bound, 1) {
			return lower
		}
		return lower + (bound-lower)*(rank-before)/(count-before)
	}
	return 0
}
