package plugintest

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Cluster contains nodes, and the part of a scheduler that calls a plugin for them. The zero value
// is a cluster without nodes.
type Cluster struct {
	nodes  []scheduler.NodeInfo
	byName map[string]*Node
}

// NewCluster returns a cluster of nodes like a template, whose names end in -0, -1 and so on.
func NewCluster(nodes int, template *corev1.Node) *Cluster {
	c := &Cluster{}
	for i := 0; i < nodes; i++ {
		node := template.DeepCopy()
		node.Name = fmt.Sprintf("%s-%d", template.Name, i)
		labels := map[string]string{corev1.LabelHostname: node.Name}
		for key, value := range template.Labels {
			if key != corev1.LabelHostname {
				labels[key] = value
			}
		}
		node.Labels = labels
		c.Add(NewNode(node))
	}
	return c
}

// Add adds a node. It panics if the cluster has one of that name.
func (c *Cluster) Add(node *Node) {
	name := node.Node().Name
	if c.byName[name] != nil {
		panic("plugintest: the cluster has a node " + name)
	}
	if c.byName == nil {
		c.byName = map[string]*Node{}
	}
	c.byName[name] = node
	c.nodes = append(c.nodes, node)
}

// Nodes returns the nodes, in the order in which they were added: for Handle.NodeList.
func (c *Cluster) Nodes() []scheduler.NodeInfo { return c.nodes }

// Place puts a pod on a node, so that it counts from now on. It panics if the cluster does not have
// the node.
func (c *Cluster) Place(pod *corev1.Pod, node string) {
	on := c.byName[node]
	if on == nil {
		panic("plugintest: the cluster has no node " + node)
	}
	pod.Spec.NodeName = node
	on.add(pod)
}

// Cycle is the result of a plugin for a pod and the nodes.
type Cycle struct {
	State *State
	// Node is the first node with the best score; it is empty if there is none.
	Node string
	// Rejected are the nodes that Filter rejected, or that PreFilter left out, for which the status is
	// nil.
	Rejected map[string]*scheduler.Status
	// Scores are the scores of the other nodes, after normalization. They are 0 if the plugin does
	// not score.
	Scores []scheduler.NodeScore
	// Status ended the cycle: a status from PreFilter, PreScore, Score or NormalizeScore, or an error
	// status from Filter. It is nil otherwise.
	Status *scheduler.Status
}

// Schedule calls a plugin's methods as a scheduler does to select a node: PreFilter, Filter,
// PreScore, Score and NormalizeScore, of these the ones that it has. No other plugin is asked:
// nodes without room for the pod are not excluded. The cluster does not change.
func (c *Cluster) Schedule(ctx context.Context, plugin scheduler.Plugin, pod *corev1.Pod) *Cycle {
	r := &Cycle{State: NewState(), Rejected: map[string]*scheduler.Status{}}
	nodes := r.filter(ctx, plugin, pod, c.nodes)
	if r.Status == nil && len(nodes) > 0 {
		r.score(ctx, plugin, pod, nodes)
	}
	if r.Status != nil {
		return r
	}
	best := int64(-1)
	for _, score := range r.Scores {
		if score.Score > best {
			best, r.Node = score.Score, score.Name
		}
	}
	return r
}

func (r *Cycle) filter(ctx context.Context, plugin scheduler.Plugin, pod *corev1.Pod,
	nodes []scheduler.NodeInfo) []scheduler.NodeInfo {
	skip := false
	if p, ok := plugin.(scheduler.PreFilterPlugin); ok {
		result, status := p.PreFilter(ctx, r.State, pod)
		if skip = status.Code() == scheduler.CodeSkip; status != nil && !skip {
			r.Status = status
			return nil
		}
		if result != nil {
			nodes = r.restrict(nodes, result.Nodes)
		}
	}
	p, ok := plugin.(scheduler.FilterPlugin)
	if !ok || skip {
		return nodes
	}
	accepted := make([]scheduler.NodeInfo, 0, len(nodes))
	for _, node := range nodes {
		status := p.Filter(ctx, r.State, pod, node)
		switch {
		case status == nil:
			accepted = append(accepted, node)
		case status.Code() == scheduler.CodeError:
			r.Status = status
			return nil
		default:
			r.Rejected[node.Node().Name] = status
		}
	}
	return accepted
}

func (r *Cycle) restrict(nodes []scheduler.NodeInfo, names []string) []scheduler.NodeInfo {
	considered := map[string]bool{}
	for _, name := range names {
		considered[name] = true
	}
	var left []scheduler.NodeInfo
	for _, node := range nodes {
		if name := node.Node().Name; considered[name] {
			left = append(left, node)
		} else {
			r.Rejected[name] = nil
		}
	}
	return left
}

func (r *Cycle) score(ctx context.Context, plugin scheduler.Plugin, pod *corev1.Pod, nodes []scheduler.NodeInfo) {
	for _, node := range nodes {
		r.Scores = append(r.Scores, scheduler.NodeScore{Name: node.Node().Name})
	}
	if p, ok := plugin.(scheduler.PreScorePlugin); ok {
		if status := p.PreScore(ctx, r.State, pod, nodes); status != nil {
			if status.Code() != scheduler.CodeSkip {
				r.Status = status
			}
			return
		}
	}
	p, ok := plugin.(scheduler.ScorePlugin)
	if !ok {
		return
	}
	for i, node := range nodes {
		if r.Scores[i].Score, r.Status = p.Score(ctx, r.State, pod, node); r.Status != nil {
			return
		}
	}
	if normalizer, ok := plugin.(scheduler.ScoreNormalizer); ok {
		r.Status = normalizer.NormalizeScore(ctx, r.State, pod, r.Scores)
	}
}

// Benchmark measures the time and allocations for one scheduling cycle of a plugin, for the pods in
// turn. It reports the time per node too.
//
//	func BenchmarkQuiet(b *testing.B) {
//		template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
//		cluster := plugintest.NewCluster(5000, template)
//		plugintest.Benchmark(context.Background(), b, cluster, newQuiet(b, cluster), plugintest.NewPod("default", "web", nil))
//	}
func Benchmark(ctx context.Context, b *testing.B, cluster *Cluster, plugin scheduler.Plugin, pods ...*corev1.Pod) {
	b.Helper()
	for _, pod := range pods {
		if cycle := cluster.Schedule(ctx, plugin, pod); cycle.Status != nil {
			b.Fatalf("pod %s/%s: %v", pod.Namespace, pod.Name, cycle.Status)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		cluster.Schedule(ctx, plugin, pods[i%len(pods)])
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(cluster.nodes)), "ns/node")
}
