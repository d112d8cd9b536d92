package ties

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("node-%04d", i))
	}
	return all
}

// The digits together give each node a rank of its own, whatever the order of the nodes is.
func TestEachNodeHasItsRank(t *testing.T) {
	nodes := names(1500)
	sum := map[string]int{}
	for digit, weight := 0, 1; digit < 4; digit, weight = digit+1, weight*base {
		for _, p := range rank(7, "default/web", nodes, digit) {
			sum[p.Host] += weight * p.Score
		}
	}
	seen := map[int]bool{}
	for _, node := range nodes {
		if seen[sum[node]] || sum[node] >= len(nodes) {
			t.Fatalf("node %s has the rank %d again", node, sum[node])
		}
		seen[sum[node]] = true
	}
	backward := slices.Clone(nodes)
	slices.Reverse(backward)
	if !slices.Equal(rank(7, "default/web", nodes, 0), rank(7, "default/web", backward, 0)) {
		t.Error("the rank depends on the order of the nodes")
	}
	for name, other := range map[string][]priority{
		"pod": rank(7, "default/db", nodes, 0), "seed": rank(8, "default/web", nodes, 0),
	} {
		if slices.Equal(rank(7, "default/web", nodes, 0), other) {
			t.Errorf("another %s has the same rank", name)
		}
	}
}

func TestServiceAnswersAScheduler(t *testing.T) {
	b, err := Start(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(Addresses(11)); n != 1 {
		t.Errorf("%d digits for 11 nodes", n)
	}
	if n := len(Addresses(1523)); n != 4 {
		t.Errorf("%d digits for 1523 nodes", n)
	}
	body := `{"Pod": {"metadata": {"namespace": "a", "name": "b"}}, "NodeNames": ["x", "y", "z"]}`
	address := string(b.Resolve(Addresses(3)[0]))
	response, err := http.Post(address+"/"+Verb, "application/json", bytes.NewBufferString(body)) //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var scores []priority
	if err := json.NewDecoder(response.Body).Decode(&scores); err != nil || len(scores) != 2 {
		t.Errorf("got %v, %v", scores, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
