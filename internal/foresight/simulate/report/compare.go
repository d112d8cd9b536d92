package report

import (
	"cmp"
	"slices"
)

// Comparison compares a scheduler's result with the baseline, a second scheduler's result.
// Schedulers break ties at random and sample large clusters: the baseline runs twice, and
// differences between its runs are noise.
type Comparison struct {
	// Against is the baseline's source, a file or default. Release and Scheduler are its release and
	// its name.
	Against   string `json:"against"`
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Baseline and Repeated are the numbers of its two runs.
	Baseline Summary `json:"baseline"`
	Repeated Summary `json:"repeated"`
	// Same is the number of pods that all three runs treat the same. Differences are the pods that
	// both baseline runs treat the same and the scheduler does not. Noise are the pods that the
	// baseline runs treat differently.
	Same        int          `json:"same"`
	Differences []Difference `json:"differences"`
	Noise       []Difference `json:"noise"`
}

// Difference is a pod with its nodes. The node of a pod without a node is empty.
type Difference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Node is the node in the scheduler's run, Baseline and Repeated are the nodes in the two baseline
	// runs.
	Node     string `json:"node"`
	Baseline string `json:"baseline"`
	Repeated string `json:"repeated"`
}

// NewComparison compares a result with the results from two baseline runs on the same snapshot.
func NewComparison(result, baseline, repeated *Report, against string) *Comparison {
	c := &Comparison{
		Against: against, Release: baseline.Release, Scheduler: baseline.Scheduler, Baseline: baseline.Summary,
		Repeated:    repeated.Summary,
		Differences: []Difference{}, Noise: []Difference{},
	}
	for _, o := range Outcomes(result, baseline, repeated) {
		d := Difference{Namespace: o.Namespace, Name: o.Name, Node: o.Nodes[0], Baseline: o.Nodes[1], Repeated: o.Nodes[2]}
		switch {
		case d.Baseline != d.Repeated:
			c.Noise = append(c.Noise, d)
		case d.Node != d.Baseline:
			c.Differences = append(c.Differences, d)
		default:
			c.Same++
		}
	}
	return c
}

// Outcome is a pod's nodes in several runs. The node of a pod without a node is empty.
type Outcome struct {
	Namespace, Name string
	Nodes           []string
}

// Outcomes returns the nodes of the pods that were scheduled or evicted in any run, ordered by
// namespace and name.
func Outcomes(runs ...*Report) []Outcome {
	var nodes []map[podKey]string
	for _, r := range runs {
		nodes = append(nodes, r.outcome())
	}
	for _, r := range runs {
		for _, e := range r.Evicted {
			for _, outcome := range nodes { // elsewhere the pod stays on its node
				key := podKey{e.Namespace, e.Name}
				if _, known := outcome[key]; !known {
					outcome[key] = e.Node
				}
			}
		}
	}
	keys := map[podKey]bool{}
	for _, outcome := range nodes {
		for key := range outcome {
			keys[key] = true
		}
	}
	all := make([]Outcome, 0, len(keys))
	for key := range keys {
		o := Outcome{Namespace: key.namespace, Name: key.name}
		for _, outcome := range nodes {
			o.Nodes = append(o.Nodes, outcome[key])
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// outcome returns the node of each pod that the scheduler placed, did not place, or evicted.
func (r *Report) outcome() map[podKey]string {
	nodes := map[podKey]string{}
	for _, p := range r.Placements {
		nodes[podKey{p.Namespace, p.Name}] = p.Node
	}
	for _, u := range r.Unplaced {
		nodes[podKey{u.Namespace, u.Name}] = ""
	}
	for _, e := range r.Evicted {
		nodes[podKey{e.Namespace, e.Name}] = ""
	}
	return nodes
}
