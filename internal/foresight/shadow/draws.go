package shadow

// mostTied is the number of nodes that the shadow may select for one pod before it does not matter
// any more which ones they are: the observed node is one of them as well as not.
const mostTied = 4

// draws are the nodes that the shadow selected for one pod, asked again and again.
type draws struct {
	nodes map[string]bool
	n     int
}

func (d *draws) add(node string) {
	d.nodes[node] = true
	d.n++
}

// tied reports whether the shadow selects the observed node as well as others, and whether it need
// not be asked again. If k+1 nodes are equal, 10k+4 draws miss one of them once in more than ten
// thousand times.
func (d *draws) tied(observed string) (tied, settled bool) {
	k := len(d.nodes)
	if d.nodes[observed] || k > mostTied {
		return true, true
	}
	return false, d.n >= 10*k+4
}
