//go:build linux

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/decision"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// scored returns the weighted scores of a node.
func scored(r decision.Result, name string) map[string]int64 {
	scores := map[string]int64{}
	for _, n := range r.Nodes {
		if n.Name != name {
			continue
		}
		for _, s := range n.Scores {
			scores[s.By] = s.Score
		}
		if n.Score != nil {
			scores["total"] = *n.Score
		}
	}
	return scores
}

// refused returns who refuses each node that is refused.
func refused(r decision.Result) map[string][]string {
	all := map[string][]string{}
	for _, n := range r.Nodes {
		if len(n.Refused) > 0 {
			all[n.Name] = n.Refused
		}
	}
	return all
}

// exactCluster has two nodes that fit, of which the smaller one is preferred, and five that do not.
func exactCluster() string {
	const taint = "taints: [{key: team, value: x, effect: NoSchedule}]"
	return node("small", 4, "disk: ssd", "") + node("large", 8, "", "") +
		node("full", 4, "", "") + pod("running", "4", "", "nodeName: full", "phase: Running") +
		node("cordoned", 4, "",
			"unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]") +
		node("tainted", 4, "", taint) + node("tiny", 1, "", taint) + node("port", 4, "", "") +
		pod("neighbor", "1", "labels: {app: port}", "nodeName: port", "phase: Running") +
		pod("other", "1", "", "", "phase: Pending") + pod("web", "2", "", `affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: port}}}]`, "phase: Pending")
}

func TestEachNodeHasItsScoresOrWhoRefusesIt(t *testing.T) {
	t.Parallel()
	r := explained(t, exactCluster(), apiserver.Release, "large", pack.Scheduler{})
	want := map[string][]string{
		"full": {"NodeResourcesFit"}, "cordoned": {"NodeUnschedulable", "TaintToleration"}, "tainted": {"TaintToleration"},
		"tiny": {"TaintToleration", "NodeResourcesFit"}, "port": {"InterPodAffinity"},
	}
	equal(t, "refused nodes", want, refused(r))
	equal(t, "node, and the order of nodes", [3]string{"small", "small", "large"},
		[3]string{r.Node, r.Nodes[0].Name, r.Nodes[1].Name})
	equal(t, "notes", 0, len(r.Notes))
	// NodeResourcesFit: the mean of the free shares of CPU and memory. A pod without a memory request
	// counts as 200 MB. NodeResourcesBalancedAllocation: 100 minus half the difference of the shares.
	for name, want := range map[string]map[string]int64{
		"small": {"NodeAffinity": 200, "NodeResourcesFit": (50 + 97) / 2, "NodeResourcesBalancedAllocation": 75},
		"large": {"NodeAffinity": 0, "NodeResourcesFit": (75 + 97) / 2, "NodeResourcesBalancedAllocation": 87},
	} {
		got, sum := scored(r, name), int64(0)
		for by, score := range got {
			if by != "total" {
				sum += score
			}
		}
		for by, score := range want {
			if got[by] != score {
				t.Errorf("node %s: %s scores %d, want %d", name, by, got[by], score)
			}
		}
		if sum != got["total"] {
			t.Errorf("node %s: the scores %v have the sum %d", name, got, sum)
		}
	}
	chosen := r.Chosen
	if chosen == nil {
		t.Fatal("nothing about the node that was asked for")
	}
	equal(t, "outcome", decision.Lower, chosen.Outcome)
	equal(t, "best node, and what differs most", [2]string{"small", "NodeAffinity"},
		[2]string{chosen.Best, chosen.Differences[0].By})
	equal(t, "what it lacks", int64(200-13-12), chosen.Lacks)
	changes := []decision.Change{
		{By: "NodeAffinity", Weight: 2, To: 0}, {By: "NodeResourcesFit", Weight: 1,
			To: 15}, {By: "NodeResourcesBalancedAllocation", Weight: 1, To: 16},
	}
	equal(t, "changes", changes, chosen.Changes)
}

// extender refuses one node and prefers another.
func extender(t *testing.T, refuses, prefers string) string {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(respond func(nodes []string) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var args extenderv1.ExtenderArgs
			if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.NodeNames == nil {
				http.Error(w, fmt.Sprintf("no names of nodes: %v", err), http.StatusBadRequest)
				return
			}
			if err := json.NewEncoder(w).Encode(respond(*args.NodeNames)); err != nil {
				t.Error(err)
			}
		}
	}
	mux.Handle("/filter", answer(func(nodes []string) any {
		left := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == refuses })
		return extenderv1.ExtenderFilterResult{NodeNames: &left, FailedNodes: extenderv1.FailedNodesMap{refuses: "not here"}}
	}))
	mux.Handle("/prioritize", answer(func(nodes []string) any {
		list := extenderv1.HostPriorityList{}
		for _, n := range nodes {
			score := int64(0)
			if n == prefers {
				score = extenderv1.MaxExtenderPriority
			}
			list = append(list, extenderv1.HostPriority{Host: n, Score: score})
		}
		return list
	}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
