package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// Result is a replay of a recording by a scheduler.
type Result struct {
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Seconds is the recording's length; StepSeconds is the length that was applied together, and
	// Groups counts such steps.
	Seconds     float64 `json:"seconds"`
	StepSeconds float64 `json:"stepSeconds"`
	Groups      int     `json:"groups"`
	// WallSeconds is the replay's duration.
	WallSeconds float64 `json:"wallSeconds"`
	// Replayed and Recorded are the cluster in the replay and in the recording.
	Replayed Outcome `json:"replayed"`
	Recorded Outcome `json:"recorded"`
	// SameNode and OtherNode count the pods that have a node in both, if the recording knows it.
	SameNode    int          `json:"sameNode"`
	OtherNode   int          `json:"otherNode"`
	Differences []Difference `json:"differences"`
	// Evicted are the pods that the scheduler evicted, Lost the pods whose node was removed, and
	// Unplaced the pods that wait in the end.
	Evicted  []Evicted  `json:"evicted"`
	Lost     []Evicted  `json:"lost"`
	Unplaced []Unplaced `json:"unplaced"`
	Programs []string   `json:"programs,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
	// Unknown are facts that a replay does not know.
	Unknown []string `json:"unknown"`
}

// Outcome is a cluster over time.
type Outcome struct {
	// Arrived counts new pods, Placed the new and pending pods that got a node, and Ended the pods
	// that finished or were deleted.
	Arrived int `json:"arrived"`
	Placed  int `json:"placed"`
	Ended   int `json:"ended"`
	Evicted int `json:"evicted"`
	// Waiting are the placed pods' waiting times.
	Waiting Waiting `json:"waitingSeconds"`
	// Mean are the mean figures over the whole time, and MostWaiting is the largest number of pods
	// that waited at one time.
	Mean        Values  `json:"mean"`
	MostWaiting int     `json:"mostWaiting"`
	Points      []Point `json:"points"`
}

// Waiting are quantiles of seconds.
type Waiting struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// newWaiting returns the quantiles for waiting times.
func newWaiting(all []time.Duration) Waiting {
	if len(all) == 0 {
		return Waiting{}
	}
	slices.Sort(all)
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	at := func(part float64) float64 {
		return round(all[min(int(part*float64(len(all))), len(all)-1)].Seconds(), 3)
	}
	return Waiting{Mean: round((sum / time.Duration(len(all))).Seconds(), 3), P50: at(0.5), P90: at(0.9), P99: at(0.99),
		Max: at(1)}
}

// Difference is a pod that has another node than in the recording.
type Difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Recorded  string `json:"recorded"`
	Node      string `json:"node"`
}

// Evicted is a pod that was removed from its node. By is the pod that it made room for, if the
// scheduler reported it.
type Evicted struct {
	report.Placement
	Seconds float64 `json:"seconds"`
}

// Unplaced is a pod that waits in the end. Since is when it arrived.
type Unplaced struct {
	report.Unplaced
	Since float64 `json:"sinceSeconds"`
}

// Outcome returns a cluster whose pods waited as long.
func (s *Series) Outcome(waits []time.Duration) Outcome {
	return Outcome{Waiting: newWaiting(waits), Mean: s.Mean(), Points: s.Points(), MostWaiting: int(s.most)}
}

// Outcome returns the recorded cluster. The history is finished.
func (h *History) Outcome() Outcome {
	o := h.Series.Outcome(nil)
	var waits []time.Duration
	for _, l := range h.all {
		if !l.Before {
			o.Arrived++
		}
		if l.IsBound && (!l.Before || l.Bound > 0) {
			o.Placed++
			waits = append(waits, l.Wait())
		}
		if l.Preempted {
			o.Evicted++
		} else if l.IsEnded {
			o.Ended++
		}
	}
	o.Waiting = newWaiting(waits)
	return o
}

// Sort orders the lists by namespace and name. They are never null in JSON.
func (r *Result) Sort() {
	byTime := func(a, b Evicted) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	r.Evicted, r.Lost = append([]Evicted{}, r.Evicted...), append([]Evicted{}, r.Lost...)
	slices.SortFunc(r.Evicted, byTime)
	slices.SortFunc(r.Lost, byTime)
	r.Unplaced = append([]Unplaced{}, r.Unplaced...)
	slices.SortFunc(r.Unplaced, func(a, b Unplaced) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	r.Differences = append([]Difference{}, r.Differences...)
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
