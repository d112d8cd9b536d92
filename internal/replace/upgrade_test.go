package replace

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestReplacedDefaultSchedulerIsComparedWithTheCluster(t *testing.T) {
	info := &inspect.Info{Release: versions.Release{Major: 1, Minor: 25, Patch: 4}}
	const needs = "run `pmk-sched upgrade --default` on the node"
	for name, tt := range map[string]struct {
		node NodeStatus
		here *HereStatus
		want NodeUpgrade
	}{
		"up to date": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Replaced},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4", Release: "v1.25.4"},
		},
		"no release in the tag": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:mine"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:mine"},
		},
		"behind": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "registry.example.com:5000/s:v1.24.3-plugins-0123456789"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "registry.example.com:5000/s:v1.24.3-plugins-0123456789",
				Release: "v1.24.3", Due: true, Needs: needs},
		},
		"kubeadm wrote the manifest again": {
			node: NodeStatus{Node: "a", Image: "registry.k8s.io/kube-scheduler:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Replaced,
				Drift: []Drift{{Path: "/etc/kubernetes/manifests/kube-scheduler.yaml", What: "rewritten without the replacement"}}},
			want: NodeUpgrade{
				Node: "a", Image: "registry.k8s.io/kube-scheduler:v1.25.4", Release: "v1.25.4", Due: true, Needs: needs,
				Drift: []string{"/etc/kubernetes/manifests/kube-scheduler.yaml: rewritten without the replacement"},
			},
		},
		"interrupted": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Started, Step: "swap"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4", Release: "v1.25.4", Due: true,
				Drift: []string{"the replacement stopped at step swap"}, Needs: needs},
		},
	} {
		if diff := cmp.Diff(tt.want, describeNode(tt.node, tt.here, info)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodeOfTheLeaderIsUpgradedLast(t *testing.T) {
	nodes := []NodeUpgrade{{Node: "b", Leads: true}, {Node: "c"}, {Node: "a"}}
	slices.SortFunc(nodes, byNode)
	if nodes[0].Node != "a" || nodes[1].Node != "c" || nodes[2].Node != "b" {
		t.Errorf("got %+v", nodes)
	}
}

func TestReportCountsWhatIsDue(t *testing.T) {
	r := &UpgradeReport{Schedulers: []lifecycle.Upgrade{{Due: true}, {}, {Due: true, Blocked: "x"}},
		Nodes: []NodeUpgrade{{Due: true}, {}}}
	if due, all := r.Due(); due != 3 || all != 5 {
		t.Errorf("%d of %d are due, want 3 of 5", due, all)
	}
}
