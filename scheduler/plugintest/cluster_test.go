package plugintest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

// packer has every extension point that selects a node. It prefers nodes with many pods.
type packer struct {
	only              []string
	preFilter         *scheduler.Status
	preScore, scoring *scheduler.Status
	filter            map[string]*scheduler.Status
}

func (p *packer) Name() string { return "Packer" }

func (p *packer) PreFilter(_ context.Context, state scheduler.State,
	_ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
	state.Write("Packer", true)
	if p.only == nil {
		return nil, p.preFilter
	}
	return &scheduler.PreFilterResult{Nodes: p.only}, p.preFilter
}

func (p *packer) Filter(_ context.Context, state scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) *scheduler.Status {
	if _, ok := state.Read("Packer"); !ok {
		return scheduler.Error(errors.New("no state"))
	}
	return p.filter[node.Node().Name]
}

func (p *packer) PreScore(context.Context, scheduler.State, *corev1.Pod, []scheduler.NodeInfo) *scheduler.Status {
	return p.preScore
}

func (p *packer) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	node scheduler.NodeInfo) (int64, *scheduler.Status) {
	return int64(node.PodCount()), p.scoring
}

func (p *packer) NormalizeScore(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	scores []scheduler.NodeScore) *scheduler.Status {
	for i := range scores {
		scores[i].Score *= 10
	}
	return nil
}

// nothing has no extension point.
type nothing struct{}

func (nothing) Name() string { return "Nothing" }

func newCluster() *plugintest.Cluster {
	template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	template.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	c := plugintest.NewCluster(3, template)
	c.Place(plugintest.NewPod("default", "old", plugintest.Requests("1", "1Gi")), "n-1")
	return c
}

func TestClusterSelectsANodeWithThePlugin(t *testing.T) {
	full, failed := scheduler.Unschedulable("full"), scheduler.Error(errors.New("broken"))
	cases := map[string]struct {
		plugin   scheduler.Plugin
		node     string
		rejected []string
		status   *scheduler.Status
	}{
		"the best score":      {plugin: &packer{}, node: "n-1"},
		"no extension points": {plugin: nothing{}, node: "n-0"},
		"a node is rejected": {plugin: &packer{filter: map[string]*scheduler.Status{"n-1": full}}, node: "n-0",
			rejected: []string{"n-1"}},
		"all nodes are rejected": {plugin: &packer{filter: map[string]*scheduler.Status{"n-0": full, "n-1": full,
			"n-2": full}}, rejected: []string{"n-0", "n-1", "n-2"}},
		"PreFilter restricts": {plugin: &packer{only: []string{"n-2"}}, node: "n-2", rejected: []string{"n-0", "n-1"}},
		"PreFilter rejects":   {plugin: &packer{preFilter: full}, status: full},
		"PreFilter skips Filter": {plugin: &packer{preFilter: scheduler.Skip(),
			filter: map[string]*scheduler.Status{"n-1": full}}, node: "n-1"},
		"Filter fails":            {plugin: &packer{filter: map[string]*scheduler.Status{"n-0": failed}}, status: failed},
		"PreScore skips Score":    {plugin: &packer{preScore: scheduler.Skip()}, node: "n-0"},
		"PreScore ends the cycle": {plugin: &packer{preScore: failed}, status: failed},
		"Score ends the cycle":    {plugin: &packer{scoring: failed}, status: failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			cycle := c.Schedule(context.Background(), tc.plugin, plugintest.NewPod("default", "new", nil))
			var rejected []string
			for _, node := range c.Nodes() {
				if _, ok := cycle.Rejected[node.Node().Name]; ok {
					rejected = append(rejected, node.Node().Name)
				}
			}
			if diff := cmp.Diff(tc.rejected, rejected); diff != "" || cycle.Node != tc.node || cycle.Status != tc.status {
				t.Errorf("node %q, status %v, rejected (-want +got):\n%s", cycle.Node, cycle.Status, diff)
			}
		})
	}
}

func TestClusterCountsThePodsThatWerePlaced(t *testing.T) {
	c := newCluster()
	var got []int64
	for _, node := range c.Nodes() {
		got = append(got, node.Requested().MilliCPU)
	}
	if diff := cmp.Diff([]int64{0, 1000, 0}, got); diff != "" {
		t.Error(diff)
	}
	node := c.Nodes()[2].Node()
	if diff := cmp.Diff(map[string]string{"kubernetes.io/hostname": "n-2", "zone": "a"}, node.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]scheduler.NodeScore{{Name: "n-0"}, {Name: "n-1", Score: 10}, {Name: "n-2"}},
		c.Schedule(context.Background(), &packer{}, plugintest.NewPod("default", "new", nil)).Scores); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkCluster(b *testing.B) {
	plugintest.Benchmark(context.Background(), b, newCluster(), &packer{}, plugintest.NewPod("default", "new", nil))
}
