package adapter

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

const nodesVisited = 1000

const key = "Frugal/limit"

type limit struct{ pods int }

// frugal is a portable plugin that reads state, node and pods without allocating.
type frugal struct {
	handle scheduler.Handle
	full   *scheduler.Status
}

func (f *frugal) Name() string { return "Frugal" }

func (f *frugal) Filter(ctx context.Context, s scheduler.State, _ *corev1.Pod, n scheduler.NodeInfo) *scheduler.Status {
	value, _ := s.Read(key)
	if n.PodCount() >= value.(*limit).pods || n.Requested().MilliCPU > n.Allocatable().MilliCPU || n.Node() == nil {
		return f.full
	}
	if log := f.handle.Logger(ctx); log.Enabled(10) {
		log.Info(10, "accepted", "node", n.Node().Name)
	}
	return nil
}

func (f *frugal) Score(_ context.Context, _ scheduler.State, _ *corev1.Pod,
	n scheduler.NodeInfo) (int64, *scheduler.Status) {
	return int64(n.PodCount()) + n.Requested().Memory/n.Allocatable().Memory, nil
}

// native is the same plugin, written against the framework.
type native struct{}

func (native) Name() string { return "Frugal" }

type nativeLimit struct{ pods int }

func (l *nativeLimit) Clone() fwk.StateData { return l }

func (native) Filter(ctx context.Context, s fwk.CycleState, _ *corev1.Pod, n fwk.NodeInfo) *fwk.Status {
	value, _ := s.Read("native")
	if len(n.GetPods()) >= value.(*nativeLimit).pods ||
		n.GetRequested().GetMilliCPU() > n.GetAllocatable().GetMilliCPU() || n.Node() == nil {
		return fwk.NewStatus(fwk.Unschedulable, "full")
	}
	if log := klog.FromContext(ctx).V(10); log.Enabled() {
		log.Info("accepted", "node", n.Node().Name)
	}
	return nil
}

func (native) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, n fwk.NodeInfo) (int64, *fwk.Status) {
	return int64(len(n.GetPods())) + n.GetRequested().GetMemory()/n.GetAllocatable().GetMemory(), nil
}

func (native) ScoreExtensions() fwk.ScoreExtensions { return nil }

// cost is a scheduling cycle that filters and scores every node.
type cost struct {
	ctx    context.Context
	state  fwk.CycleState
	pod    *corev1.Pod
	nodes  []fwk.NodeInfo
	filter fwk.FilterPlugin
	score  fwk.ScorePlugin
}

func newCost(t testing.TB, portable bool, pods int) *cost {
	c := &cost{ctx: context.Background(), state: framework.NewCycleState(), pod: &corev1.Pod{}}
	for i := 0; i < nodesVisited; i++ {
		info := framework.NewNodeInfo(&corev1.Pod{})
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("8Gi")}
		info.SetNode(node)
		c.nodes = append(c.nodes, info)
	}
	if !portable {
		c.state.Write("native", &nativeLimit{pods})
		c.filter, c.score = native{}, native{}
		return c
	}
	state{c.state.(*framework.CycleState)}.Write(key, &limit{pods})
	type bound struct {
		Base
		FilterPoint
		ScorePoint
	}
	plugin, err := Factory("Frugal", func(_ context.Context, host *Host) (Plugin, error) {
		p := &frugal{handle: host, full: scheduler.Unschedulable("full")}
		return &bound{Base: host.Base(p), FilterPoint: FilterPoint{Host: host, Plugin: p},
			ScorePoint: ScorePoint{Host: host, Plugin: p}}, nil
	})(c.ctx, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.filter, c.score = plugin.(fwk.FilterPlugin), plugin.(fwk.ScorePlugin)
	return c
}

func (c *cost) visit() (accepted int) {
	for _, n := range c.nodes {
		if c.filter.Filter(c.ctx, c.state, c.pod, n) == nil {
			accepted++
			c.score.Score(c.ctx, c.state, c.pod, n)
		}
	}
	return accepted
}

func TestAcceptedNodesDoNotAllocate(t *testing.T) {
	c := newCost(t, true, 5)
	if accepted := c.visit(); accepted != nodesVisited {
		t.Fatalf("%d of %d nodes were accepted", accepted, nodesVisited)
	}
	if n := testing.AllocsPerRun(10, func() { c.visit() }); n != 0 {
		t.Errorf("%v allocations for %d nodes, want 0", n, nodesVisited)
	}
}

// A rejection needs a new framework.Status, because the framework writes the plugin's name into it.
func TestRejectionsAllocateNoMoreThanNativeOnes(t *testing.T) {
	allocations := func(portable bool) float64 {
		c := newCost(t, portable, 0)
		if accepted := c.visit(); accepted != 0 {
			t.Fatalf("%d nodes were accepted", accepted)
		}
		return testing.AllocsPerRun(10, func() { c.visit() })
	}
	if portable, native := allocations(true), allocations(false); portable > native {
		t.Errorf("%v allocations for %d rejections, natively %v", portable, nodesVisited, native)
	}
}

func BenchmarkVisit1000Nodes(b *testing.B) {
	for _, way := range []struct {
		name     string
		portable bool
	}{{"native", false}, {"portable", true}} {
		b.Run(way.name, func(b *testing.B) {
			c := newCost(b, way.portable, 5)
			b.ReportAllocs()
			for b.Loop() {
				c.visit()
			}
		})
	}
}

// Implementations of the framework's interfaces that are not the framework's own.
type (
	foreignNode  struct{ fwk.NodeInfo }
	foreignState struct{ fwk.CycleState }
)

func TestForeignImplementationsAreWrapped(t *testing.T) {
	c := newCost(t, true, 5)
	if status := c.filter.Filter(c.ctx, foreignState{c.state}, c.pod, foreignNode{c.nodes[0]}); status != nil {
		t.Errorf("got %v", status)
	}
	s := stateOf(foreignState{c.state})
	s.Write("a", 1)
	if value, ok := s.Read("a"); value != 1 || !ok {
		t.Errorf("a is %v, %t", value, ok)
	}
	s.Delete("a")
	if _, ok := s.Read("a"); ok {
		t.Error("a still exists")
	}
	own, wrapped := nodeOf(c.nodes[0]), nodeOf(foreignNode{c.nodes[0]})
	if own.PodCount() != wrapped.PodCount() || own.Pod(0) != wrapped.Pod(0) || own.Node() != wrapped.Node() ||
		fmt.Sprint(own.Requested(), own.Allocatable()) != fmt.Sprint(wrapped.Requested(), wrapped.Allocatable()) {
		t.Error("the wrapped node differs")
	}
}
