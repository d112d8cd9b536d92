// Package decision simulates a scheduler's decision about one pod and explains it: for each node,
// the plugin or extender that refused it, or its scores.
package decision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
)

// Input contains the observations about a scheduler.
type Input struct {
	Namespace, Pod     string
	Release, Scheduler string
	// Nodes are all nodes' names.
	Nodes []string
	// Filters are the plugins that may refuse nodes, in the scheduler's order.
	Filters []Filter
	// Passed are the nodes that passed all plugins. Stages are the nodes that each extender left, in
	// the extenders' order. After an extender that left no node the stages are missing.
	Passed []string
	Stages []Stage
	// Scores are nil if the scheduler did not score: at most one node was left.
	Scores *Scores
	// Weights are the plugins' weights, ExtenderWeights the weights for extenders that score.
	Weights, ExtenderWeights map[string]int64
	// Selected is the node that the scheduler selected, Message why it selected none. Examined reports
	// that it examined the nodes: it may have failed before.
	Selected, Message string
	Examined          bool
	// From is the pod's node before; Evicted are the pods that made room for it.
	From    string
	Evicted []string
	// Fixes would make the pod fit on the node that is explained in addition.
	Fixes []Fix
	// Notes are the scheduler's differences from the one that a deployment runs.
	Notes []string
}

// Filter is the decision of one plugin alone.
type Filter struct {
	Plugin string
	// Passed are the nodes that it did not refuse, Reasons why it refused others.
	Passed  []string
	Reasons []string
	// Failed is its error; it did not decide.
	Failed string
}

// Stage are the nodes that an extender left.
type Stage struct {
	Extender string
	Passed   []string
}

// Result is a scheduler's decision about each node.
type Result struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Release   string `json:"release"`
	Scheduler string `json:"scheduler"`
	// Node is the node on which the scheduler placed the pod, From its node in the snapshot. Message
	// is the reason why it was placed nowhere.
	Node    string `json:"node,omitempty"`
	From    string `json:"from,omitempty"`
	Message string `json:"message,omitempty"`
	// Evicted are the pods that made room for it. The nodes' refusals are from before the eviction.
	Evicted []string `json:"evicted,omitempty"`
	// Tied are the nodes with the best score, if there are several: the scheduler selects one of them
	// at random.
	Tied []string `json:"tied,omitempty"`
	// Nodes are all nodes: first the scored nodes, the best one first, then the nodes without a
	// score, then the refused nodes.
	Nodes []Node `json:"nodes"`
	// Refusals are the plugins and extenders that refused nodes.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Chosen lists the changes that would make one node win. It is nil if no node was chosen.
	Chosen *Chosen  `json:"chosen,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Node is the scheduler's decision about a node.
type Node struct {
	Name string `json:"name"`
	// Refused are the plugins that refuse it, each for itself, or the extender that did.
	Refused []string `json:"refused,omitempty"`
	// Score is the sum of Scores. It is nil if the node was not scored.
	Score  *int64  `json:"score,omitempty"`
	Scores []Score `json:"scores,omitempty"`
}

// Score is a plugin's or an extender's contribution to a node's score.
type Score struct {
	By string `json:"by"`
	// Score is multiplied by Weight; extenders count ten times that.
	Score  int64 `json:"score"`
	Weight int64 `json:"weight"`
	// Extender reports that By is an extender's URL.
	Extender bool `json:"extender,omitempty"`
}

// Refusal is a plugin or an extender that refused nodes.
type Refusal struct {
	By string `json:"by"`
	// Nodes is the number of nodes that it refuses, Only the number that no other plugin refuses.
	Nodes int `json:"nodes"`
	Only  int `json:"only"`
	// Reasons are its own words.
	Reasons []string `json:"reasons,omitempty"`
}

// extenderScale is the factor for extender scores: an extender's score is at most 10, a plugin's at
// most 100 (prioritizeNodes in pkg/scheduler/schedule_one.go).
const extenderScale = 10

// New evaluates the observations about a scheduler. chosen is a node to explain in addition. It may
// be empty.
func New(in Input, chosen string) *Result {
	r := &Result{
		Namespace: in.Namespace, Pod: in.Pod, Release: in.Release, Scheduler: in.Scheduler,
		Node: in.Selected, From: in.From, Message: in.Message, Evicted: in.Evicted, Nodes: []Node{}, Notes: in.Notes,
	}
	refused := r.refusedBy(in)
	r.compare(in, refused)
	for _, name := range in.Nodes {
		n := Node{Name: name, Refused: refused[name]}
		if in.Scores != nil && len(n.Refused) == 0 {
			n.addScores(in)
		}
		r.Nodes = append(r.Nodes, n)
	}
	slices.SortFunc(r.Nodes, compareNodes)
	r.findTies()
	r.countRefusals(in)
	if chosen != "" {
		r.choose(chosen)
	}
	if c := r.Chosen; c != nil && c.Outcome == Refused {
		c.Fixes = in.Fixes
	}
	return r
}

// refusedBy returns who refuses each node.
func (r *Result) refusedBy(in Input) map[string][]string {
	refused := map[string][]string{}
	for _, f := range in.Filters {
		if f.Failed != "" {
			r.Notes = append(r.Notes,
				fmt.Sprintf("plugin %s failed without the others, so that its refusals are missing: %s", f.Plugin, f.Failed))
			continue
		}
		for _, name := range missing(in.Nodes, f.Passed) {
			refused[name] = append(refused[name], f.Plugin)
		}
	}
	before := in.Passed
	for _, s := range in.Stages {
		for _, name := range missing(before, s.Passed) {
			refused[name] = append(refused[name], s.Extender)
		}
		before = s.Passed
	}
	return refused
}

// unknownPlugin is shown for plugins that refuse a node together.
const unknownPlugin = "(plugins together)"

// compare compares the plugins alone with all plugins together. A plugin that reads a second
// plugin's state decides otherwise without it.
func (r *Result) compare(in Input, refused map[string][]string) {
	if !in.Examined || len(in.Evicted) > 0 {
		return // Passed is unknown, or describes the state after the eviction
	}
	passed := map[string]bool{}
	for _, name := range in.Passed {
		passed[name] = true
	}
	plugins := map[string]bool{}
	for _, f := range in.Filters {
		plugins[f.Plugin] = true
	}
	together, alone := 0, map[string]int{}
	for _, name := range in.Nodes {
		switch {
		case !passed[name] && len(refused[name]) == 0:
			refused[name] = []string{unknownPlugin}
			together++
		case passed[name]:
			refused[name] = slices.DeleteFunc(refused[name], func(by string) bool {
				if plugins[by] {
					alone[by]++
				}
				return plugins[by]
			})
		}
	}
	if together > 0 {
		r.Notes = append(r.Notes, plural.Phrase(together, "node is", "nodes are")+
			" refused by all plugins together, and by none of them alone")
	}
	for _, by := range slices.Sorted(maps.Keys(alone)) {
		r.Notes = append(r.Notes, fmt.Sprintf("plugin %s alone refuses %s that it does not refuse with the others", by,
			plural.Count(alone[by], "node")))
	}
}

// missing returns the names in all that are not in some.
func missing(all, some []string) []string {
	has := make(map[string]bool, len(some))
	for _, name := range some {
		has[name] = true
	}
	var names []string
	for _, name := range all {
		if !has[name] {
			names = append(names, name)
		}
	}
	return names
}

// addScores adds the scores in the log.
func (n *Node) addScores(in Input) {
	total, ok := in.Scores.Total[n.Name]
	if !ok {
		return
	}
	n.Score = &total
	for _, by := range slices.Sorted(maps.Keys(in.Scores.Plugins)) {
		if score, ok := in.Scores.Plugins[by][n.Name]; ok {
			n.Scores = append(n.Scores, Score{By: by, Score: score, Weight: max(1, in.Weights[by])})
		}
	}
	for _, by := range slices.Sorted(maps.Keys(in.Scores.Extenders)) {
		weight, scores := in.ExtenderWeights[by]
		if score, ok := in.Scores.Extenders[by][n.Name]; ok && scores {
			n.Scores = append(n.Scores, Score{By: by, Score: score * weight * extenderScale, Weight: weight, Extender: true})
		}
	}
}

// compareNodes orders nodes by their scores, followed by nodes without a score, followed by refused
// nodes, by the number of refusals.
func compareNodes(a, b Node) int {
	score := func(n Node) int64 {
		if n.Score == nil {
			return -1
		}
		return *n.Score
	}
	return cmp.Or(cmp.Compare(len(a.Refused), len(b.Refused)), cmp.Compare(score(b), score(a)),
		cmp.Compare(a.Name, b.Name))
}

// countRefusals counts the nodes that each plugin and extender refuses.
func (r *Result) countRefusals(in Input) {
	count := map[string]*Refusal{}
	var order []string
	add := func(by string, reasons []string) {
		if count[by] == nil {
			count[by] = &Refusal{By: by, Reasons: reasons}
			order = append(order, by)
		}
	}
	for _, f := range in.Filters {
		add(f.Plugin, f.Reasons)
	}
	for _, n := range r.Nodes {
		for _, by := range n.Refused {
			add(by, nil)
			count[by].Nodes++
			if len(n.Refused) == 1 {
				count[by].Only++
			}
		}
	}
	for _, by := range order {
		if count[by].Nodes > 0 {
			r.Refusals = append(r.Refusals, *count[by])
		}
	}
	slices.SortStableFunc(r.Refusals, func(a, b Refusal) int { return cmp.Compare(b.Nodes, a.Nodes) })
}
