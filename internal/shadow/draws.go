package shadow

// mostTied is how many nodes the shadow may select for one pod until it does not matter which ones they are: the observed node is one of them as
// well as not.
const mostTied = 4

// draws are the nodes that the shadow selected for one pod, asked again and again; an empty one: none.
type draws struct {
	times map[string]int
	nodes []string // of times, in the order in which they were selected first
	n     int
}

func newDraws() *draws { return &draws{times: map[string]int{}} }

func (d *draws) add(node string) {
	if d.times[node] == 0 {
		d.nodes = append(d.nodes, node)
	}
	d.times[node]++
	d.n++
}

// judge returns the node that the shadow selects, other than the observed one if it selects both; tied says that it does, and settled that it need
// not be asked again.
//
// One draw that differs from the others does not count: up to 1.34 kube-scheduler receives pods with a node in one goroutine and those that wait in another
// (pkg/scheduler/eventhandlers.go adds two event handlers), and may decide before it knows what happened before. If k+1 nodes are equal, 12k+8 draws
// have one of them less than twice once in more than ten thousand times.
func (d *draws) judge(observed string) (node string, tied, settled bool) {
	same := d.times[observed]
	others, k := d.n-same, 0
	node = observed
	for _, other := range d.nodes {
		if other == observed {
			continue
		}
		if k++; node == observed || d.times[other] > d.times[node] {
			node = other
		}
	}
	switch {
	case others == 0:
		return observed, false, true
	case same > 1 && others > 1, k > mostTied && observed != "":
		return node, true, true
	case d.n < 12*k+8:
		return node, false, false
	case others == 1:
		return observed, false, true
	}
	return node, false, true
}
