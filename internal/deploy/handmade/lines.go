package handmade

import (
	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// places adds the positions of a node and its children to all, by the line that the same node has
// in a copy. A line has the position of its first node.
func places(all map[int]node.Position, from, to *yaml.Node) {
	if from.Line > 0 && all[to.Line].Line == 0 {
		all[to.Line] = node.At(from)
	}
	for i := range min(len(from.Content), len(to.Content)) {
		places(all, from.Content[i], to.Content[i])
	}
}
