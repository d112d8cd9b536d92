package shadow

import (
	"cmp"
	"slices"
)

// Report compares the shadow's decisions with the observed scheduler's.
type Report struct {
	// Release is the shadow's release, such as v1.24.3, Scheduler its name. Observed is the scheduler
	// that it is compared with.
	Release   string  `json:"release"`
	Scheduler string  `json:"scheduler"`
	Observed  string  `json:"observed"`
	Seconds   float64 `json:"seconds"`
	// Same is the number of pods that both treat the same. Differences are the pods that the shadow
	// treats differently. Noise are ties: the shadow, asked again, selects the observed node too,
	// or one of many.
	Same        int          `json:"same"`
	Differences []Difference `json:"differences"`
	Noise       []Difference `json:"noise"`
	// Undecided are pods that the shadow did not decide about in time, or failed to.
	Undecided []Difference `json:"undecided"`
	// Missed is the number of pods that were bound without an event that the proxy received.
	Missed int `json:"missed"`
	// Evictions are the pods that the shadow would have evicted.
	Evictions []Eviction `json:"evictions"`
	// Notes are the shadow's differences from a deployed scheduler, and the errors from reads that
	// still failed at the end.
	Notes []string `json:"notes,omitempty"`
}

// Difference is a pod with the shadow's node and the observed scheduler's node. If the shadow found
// no node, Node is empty and Reason is its reason.
type Difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Observed  string `json:"observed"`
	Reason    string `json:"reason,omitempty"`
}

// Eviction is a pod, and the pod that it makes room for.
type Eviction struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	For       string `json:"for"`
}

// verdict compares both schedulers' decisions about a pod.
type verdict struct {
	Difference
	tied, undecided bool
}

// add adds a verdict to its list.
func (r *Report) add(v verdict) {
	switch {
	case v.undecided:
		r.Undecided = append(r.Undecided, v.Difference)
	case v.Node == v.Observed:
		r.Same++
	case v.tied:
		r.Noise = append(r.Noise, v.Difference)
	default:
		r.Differences = append(r.Differences, v.Difference)
	}
}

// sort orders the lists.
func (r *Report) sort() {
	for _, list := range [][]Difference{r.Differences, r.Noise, r.Undecided} {
		slices.SortFunc(list, func(a, b Difference) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	slices.SortFunc(r.Evictions, func(a, b Eviction) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
