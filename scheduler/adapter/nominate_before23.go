//go:build ignore

package adapter

func nominate(node string) *postFilterResult {
	return &postFilterResult{NominatedNodeName: node}
}
