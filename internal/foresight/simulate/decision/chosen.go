package decision

import (
	"cmp"
	"slices"
)

// Outcome is the scheduler's decision about the chosen node.
type Outcome string

// Outcomes.
const (
	Selected Outcome = "selected"
	Tied     Outcome = "tied"
	Lower    Outcome = "lower"
	Refused  Outcome = "refused"
	// Unscored is a node that was not compared with others: the scheduler failed, or it evicted pods.
	Unscored Outcome = "unscored"
)

// Chosen lists the changes that would make a node win.
type Chosen struct {
	Node    string  `json:"node"`
	Outcome Outcome `json:"outcome"`
	// Best is the node with the best score, and Lacks the difference of this node's score to it.
	Best  string `json:"best,omitempty"`
	Lacks int64  `json:"lacks"`
	// Differences are by plugin and extender, ordered by how much they lower the node's score against
	// Best.
	Differences []Difference `json:"differences,omitempty"`
	// Changes are weights with which the node would have the best score, each alone.
	Changes []Change `json:"changes,omitempty"`
	// Refusals are the plugins and extenders that refuse the node. All have to change.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Fixes would make the pod fit on the node, as far as they follow from the node and the pods on
	// it.
	Fixes []Fix `json:"fixes,omitempty"`
}

// Fix is a change that would make a plugin accept a node.
type Fix struct {
	By   string `json:"by"`
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Difference is a plugin's or an extender's scores for the node and the best node.
type Difference struct {
	By     string `json:"by"`
	Weight int64  `json:"weight"`
	Score  int64  `json:"score"`
	Best   int64  `json:"best"`
}

// Change is a plugin's or an extender's weight. A plugin or an extender with weight 0 does not
// score.
type Change struct {
	By     string `json:"by"`
	Weight int64  `json:"weight"`
	To     int64  `json:"to"`
}

// maxWeight is the greatest weight that is suggested.
const maxWeight = 1000

// choose explains one node.
func (r *Result) choose(name string) {
	i := slices.IndexFunc(r.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return
	}
	node, best := r.Nodes[i], r.Nodes[0]
	c := &Chosen{Node: name, Outcome: Unscored}
	r.Chosen = c
	switch {
	case name == r.Node:
		c.Outcome = Selected
	case len(node.Refused) > 0:
		c.Outcome = Refused
		for _, refusal := range r.Refusals {
			if slices.Contains(node.Refused, refusal.By) {
				c.Refusals = append(c.Refusals, refusal)
			}
		}
		return
	case node.Score == nil:
		return
	case slices.Contains(r.Tied, name):
		c.Outcome = Tied
	default:
		c.Outcome = Lower
	}
	if name == best.Name {
		best = r.second(name)
	}
	if best.Score == nil || node.Score == nil { // one node was left in the last cycle, which is not scored
		return
	}
	c.Best, c.Lacks = best.Name, *best.Score-*node.Score
	c.Differences = differences(node, best)
	if c.Outcome != Selected {
		c.Changes = r.changes(node)
	}
}

// second returns the best scored node except for one.
func (r *Result) second(name string) Node {
	for _, n := range r.Nodes {
		if n.Name != name && n.Score != nil {
			return n
		}
	}
	return Node{}
}

// scoreBy returns the score that a plugin or an extender added to a node.
func (n Node) scoreBy(by string) int64 {
	for _, s := range n.Scores {
		if s.By == by {
			return s.Score
		}
	}
	return 0
}

func differences(node, best Node) []Difference {
	var all []Difference
	for _, s := range best.Scores {
		all = append(all, Difference{By: s.By, Weight: s.Weight, Score: node.scoreBy(s.By), Best: s.Score})
	}
	for _, s := range node.Scores { // an extender may score some nodes only
		if !slices.ContainsFunc(all, func(d Difference) bool { return d.By == s.By }) {
			all = append(all, Difference{By: s.By, Weight: s.Weight, Score: s.Score})
		}
	}
	slices.SortStableFunc(all, func(a, b Difference) int { return cmp.Compare(b.Best-b.Score, a.Best-a.Score) })
	return all
}

// changes returns the weights with which a node would have the best score, each as near as possible
// to the current weight. Plugins bring scores to 0 to 100 before they are multiplied by their
// weight, so that a weight changes nothing else.
func (r *Result) changes(node Node) []Change {
	var all []Change
	for _, s := range node.Scores {
		if to, ok := r.winningWeight(node, s); ok {
			all = append(all, Change{By: s.By, Weight: s.Weight, To: to})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(abs(a.To-a.Weight), abs(b.To-b.Weight)) })
	return all
}

// winningWeight returns the weight nearest to s's weight with which the node beats all others. With
// the weight w+d the node is ahead of another one by lead + d×ahead/w.
func (r *Result) winningWeight(node Node, s Score) (int64, bool) {
	w, least, most := s.Weight, int64(0), int64(maxWeight)
	for _, other := range r.Nodes {
		if other.Score == nil || other.Name == node.Name {
			continue
		}
		lead, ahead := *node.Score-*other.Score, s.Score-other.scoreBy(s.By)
		switch {
		case ahead > 0: // w' > w - lead×w/ahead
			least = max(least, floorDiv(w*ahead-lead*w, ahead)+1)
		case ahead < 0: // w' < w + lead×w/-ahead
			most = min(most, ceilDiv(w*-ahead+lead*w, -ahead)-1)
		case lead <= 0:
			return 0, false
		}
	}
	if least > most {
		return 0, false
	}
	return min(max(w, least), most), true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func abs(n int64) int64 { return max(n, -n) }

// findTies finds the nodes with the best score.
func (r *Result) findTies() {
	for _, n := range r.Nodes {
		if n.Score == nil || *n.Score != *r.Nodes[0].Score {
			break
		}
		r.Tied = append(r.Tied, n.Name)
	}
	if len(r.Tied) == 1 {
		r.Tied = nil
	}
}
