package report

import (
	"path"
	"slices"
	"strings"
)

// Expectation is the expected result of a simulation for pods. One of Nodes, Pending and Evicted is
// set.
type Expectation struct {
	// Pod is the namespace and name of a pod, or a pattern of package path, such as shop/web-*:
	// then it applies to each of the pods.
	Pod string
	// Nodes are the nodes of which the pod gets one.
	Nodes []string
	// Pending is set if the pod gets no node. Reason is part of the reason that the scheduler
	// gives. If it is empty, any reason is accepted.
	Pending bool
	Reason  string
	// Evicted is set if the pod makes room for another one.
	Evicted bool
}

// String returns the expected result.
func (e Expectation) String() string {
	switch {
	case e.Evicted:
		return "evicted"
	case e.Pending && e.Reason == "":
		return pending
	case e.Pending:
		return pending + ": " + e.Reason
	case len(e.Nodes) == 1:
		return e.Nodes[0]
	}
	return "one of " + strings.Join(e.Nodes, ", ")
}

// pending is the state of a pod without a node.
const pending = "pending"

// Outcome is the expected and the actual result for a pod.
type Outcome struct {
	Pod      string `json:"pod"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Met      bool   `json:"met"`
}

// Check compares the result with expectations. bound are the nodes of pods that were bound before
// the simulation, by namespace and name. There is an outcome for each pod of an expectation, in the
// order of the expectations and of the names.
func (r *Report) Check(expectations []Expectation, bound map[string]string) []Outcome {
	pods := r.results(bound)
	outcomes := []Outcome{}
	for _, e := range expectations {
		found := false
		for _, f := range pods {
			if matches, err := path.Match(e.Pod, f.key); f.key != e.Pod && (err != nil || !matches) {
				continue
			}
			found = true
			outcomes = append(outcomes, Outcome{Pod: f.key, Expected: e.String(), Got: f.String(), Met: f.meets(e)})
		}
		if !found {
			outcomes = append(outcomes, Outcome{Pod: e.Pod, Expected: e.String(), Got: "no such pod"})
		}
	}
	return outcomes
}

// podResult is the node of a pod after a simulation, or why it has none.
type podResult struct {
	key, node, reason string
	evicted           bool
}

// results returns the pods in the order of their names.
func (r *Report) results(bound map[string]string) []podResult {
	byKey := map[string]podResult{}
	for key, node := range bound {
		byKey[key] = podResult{key: key, node: node}
	}
	for _, p := range r.Placements {
		key := p.Namespace + "/" + p.Name
		byKey[key] = podResult{key: key, node: p.Node}
	}
	for _, u := range r.Unplaced {
		key := u.Namespace + "/" + u.Name
		byKey[key] = podResult{key: key, reason: u.Reason, evicted: u.Reason == Evicted}
	}
	for _, p := range r.Evicted {
		key := p.Namespace + "/" + p.Name
		byKey[key] = podResult{key: key, evicted: true}
	}
	all := make([]podResult, 0, len(byKey))
	for _, f := range byKey {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b podResult) int { return strings.Compare(a.key, b.key) })
	return all
}

// String returns the result for the pod.
func (f podResult) String() string {
	switch {
	case f.evicted:
		return "evicted"
	case f.node != "":
		return f.node
	}
	return pending + ": " + f.reason
}

func (f podResult) meets(e Expectation) bool {
	switch {
	case e.Evicted:
		return f.evicted
	case e.Pending:
		return !f.evicted && f.node == "" && strings.Contains(f.reason, e.Reason)
	}
	return f.node != "" && slices.Contains(e.Nodes, f.node)
}
