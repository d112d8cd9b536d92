package shadow

import (
	"strings"
	"testing"
)

func TestTiesAreRecognizedByAskingAgain(t *testing.T) {
	for _, tc := range []struct {
		name     string
		selected string // repeated
		node     string
		tied     bool
		asked    int
	}{
		{"the observed node at once", "observed a", "observed", false, 1},
		{"two nodes in turn", "a observed", "a", true, 4},
		{"the observed node later", "a a a b observed a a observed", "a", true, 8},
		{"always another one", "a", "a", false, 20},
		{"one of two others", "b a a", "a", false, 32},
		{"one of many", "a a b a c b d e f g h", "a", true, 8},
		{"another one only before the shadow knows all pods", "a" + strings.Repeat(" observed", 19), "observed", false, 20},
		{"the observed node only before the shadow knows all pods", "a observed" + strings.Repeat(" a", 18), "a", false, 20},
	} {
		nodes := strings.Fields(tc.selected)
		d := newDraws()
		node, tied, settled := "", false, false
		for !settled {
			d.add(nodes[d.n%len(nodes)])
			node, tied, settled = d.judge("observed")
		}
		if node != tc.node || tied != tc.tied || d.n != tc.asked {
			t.Errorf("%s: %s, tied %v, after %d", tc.name, node, tied, d.n)
		}
	}
}

// A pod that the observed scheduler refuses has no equal nodes.
func TestRefusedPodsAreNotTied(t *testing.T) {
	d := newDraws()
	for _, node := range strings.Fields("a b c d e f g") {
		d.add(node)
		if _, tied, settled := d.judge(""); tied || settled {
			t.Errorf("after %d nodes: tied %v, settled %v", d.n, tied, settled)
		}
	}
}
