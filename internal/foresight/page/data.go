package page

import (
	"cmp"
	"slices"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// data is the input for the page's script. Nodes have the same order before and after.
type data struct {
	Nodes      []string  `json:"nodes"`
	Resources  []string  `json:"resources"`
	Namespaces []string  `json:"namespaces"`
	Pods       []podData `json:"pods"`
}

// podData is a pod: its namespace's index, its name, its nodes' indexes before and after, -1 for
// none, and its requests in resource order.
type podData [5]any

// newData returns the nodes and pods of both states, the pods ordered by namespace and name, and
// how many pods are left out.
func newData(before, after *report.Usage) (data, int) {
	d := data{Nodes: []string{}, Resources: report.Resources(before, after), Namespaces: []string{}, Pods: []podData{}}
	for _, u := range []*report.Usage{before, after} {
		for _, n := range u.List() {
			d.Nodes = append(d.Nodes, n.Name)
		}
	}
	slices.Sort(d.Nodes)
	d.Nodes = slices.Compact(d.Nodes)
	pods := podsOf(d.Nodes, before, after)
	if len(pods) > mostPods {
		return d, len(pods)
	}
	namespaces := map[string]int{}
	for _, p := range pods {
		index, known := namespaces[p.Namespace]
		if !known {
			index = len(d.Namespaces)
			namespaces[p.Namespace] = index
			d.Namespaces = append(d.Namespaces, p.Namespace)
		}
		requests := make([]int64, len(d.Resources))
		for i, resource := range d.Resources {
			requests[i] = p.Requests[resource]
		}
		d.Pods = append(d.Pods, podData{index, p.Name, p.node[0], p.node[1], requests})
	}
	return d, 0
}

// placedPod is a pod with its nodes' indexes before and after.
type placedPod struct {
	report.Pod
	node [2]int
}

func podsOf(nodes []string, states ...*report.Usage) []*placedPod {
	byName := map[string]*placedPod{}
	var all []*placedPod
	for side, u := range states {
		for _, n := range u.List() {
			index, _ := slices.BinarySearch(nodes, n.Name)
			for _, p := range n.Pods {
				key := p.Namespace + "/" + p.Name
				known := byName[key]
				if known == nil {
					known = &placedPod{Pod: p, node: [2]int{-1, -1}}
					byName[key] = known
					all = append(all, known)
				}
				known.node[side] = index
			}
		}
	}
	slices.SortFunc(all, func(a, b *placedPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}
