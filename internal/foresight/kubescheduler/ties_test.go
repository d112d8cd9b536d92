package kubescheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// Results of different builds are compared, so that a seed gives the same ranks in each of them.
func TestRanksOfASeedStayTheSame(t *testing.T) {
	nodes := names(14)
	got := map[string][2]int{}
	for digit := range 2 {
		for _, p := range rank(42, "default/web", nodes, digit) {
			digits := got[p.Host]
			digits[digit] = p.Score
			got[p.Host] = digits
		}
	}
	want := map[string][2]int{
		"node-0000": {0, 1}, "node-0001": {1, 0}, "node-0002": {4, 0}, "node-0003": {7, 0}, "node-0004": {5, 0},
		"node-0005": {8, 0}, "node-0006": {3, 0}, "node-0007": {1, 1}, "node-0008": {6, 0}, "node-0009": {9, 0},
		"node-0011": {2, 1}, "node-0012": {10, 0}, "node-0013": {2, 0}, // node-0010 is the first one
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if scores := rank(42, "default/web", nil, 0); scores == nil || len(scores) != 0 {
		t.Errorf("no node has the scores %v", scores)
	}
}

func TestEachDigitHasAnAddress(t *testing.T) {
	for nodes, want := range map[int]int{0: 1, 1: 1, 11: 1, 12: 2, 121: 2, 122: 3, 1331: 3, 1332: 4, 1523: 4} {
		if got := len(TieAddresses(nodes)); got != want {
			t.Errorf("%d digits for %d nodes, want %d", got, nodes, want)
		}
	}
	want := []string{"http://ties.invalid/0", "http://ties.invalid/1", "http://ties.invalid/2"}
	if diff := cmp.Diff(want, TieAddresses(122)); diff != "" {
		t.Error(diff)
	}
}

func TestServiceAnswersAScheduler(t *testing.T) {
	b, err := StartBreaker(1)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"Pod": {"metadata": {"namespace": "a", "name": "b"}}, "NodeNames": ["x", "y", "z"]}`
	address := string(b.Resolve(TieAddresses(3)[0]))
	if both := string(b.Resolve("a: http://ties.invalid/0, b: http://ties.invalid/1")); strings.Contains(both, "invalid") {
		t.Errorf("an address is not resolved: %s", both)
	}
	response, err := http.Post(address+"/"+TiesVerb, "application/json", bytes.NewBufferString(body)) //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var scores []priority
	err = json.NewDecoder(response.Body).Decode(&scores)
	if want := rank(1, "a/b", []string{"z", "y", "x"}, 0); err != nil || len(scores) != 2 || !slices.Equal(scores, want) {
		t.Errorf("got %v, %v, want %v", scores, err, want)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
